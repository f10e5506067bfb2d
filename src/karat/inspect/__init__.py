"""Inspect: answers read from the lake and the logs, changing nothing and starting no JVM."""
