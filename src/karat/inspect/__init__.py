"""Inspect: answers read from the lake and the logs; read-only, without a JVM."""
