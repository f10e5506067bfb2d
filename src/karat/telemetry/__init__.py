"""Telemetry: a run is a sequence of typed events; sinks turn them into lines, rows, pictures and messages."""
