"""Curation: one source made clean, SCD1 or SCD2 by key, watermark and configured order."""
