"""Rows that a curated table refuses, recorded with where they came from."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.config.resolved import CuratedTable
from karat.lake.delta import DeltaTables
from karat.lake.quarantine import RefusedBy, record_refused
from karat.state.commits import Commit


def quarantine(refused: DataFrame, table: CuratedTable, tables: DeltaTables, commit: Commit) -> int:
    """Record the refused rows; returns how many were not on record yet."""
    at = F.lit(str(commit.position["started_at"]))
    by = RefusedBy(table.target, table.quarantine, str(table.source), tables.address(table.source), at)
    return record_refused(refused, by, tables, commit)
