"""Temporal: the shared kernel, how rows are named, hashed and put in order."""
