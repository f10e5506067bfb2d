"""Benchmarks: what a run costs beside the same work written by hand, in one process and on equal tables."""
