"""The command line: one call per command; every answer for people or, with --json, for machines."""

from karat.cli.app import main as main
