"""Logs read ahead of commits: they are read while something else is done, and nothing that goes wrong there stops it."""

from dataclasses import dataclass, field
from threading import Event

from pyspark.sql import DataFrame, SparkSession

from karat.config.names import TableName
from karat.execute.ahead import logs_read_ahead

RECEIPTS, HISTORY, NEVER_MADE = (TableName("silver", name) for name in ("receipts", "history", "never_made"))


@dataclass
class Logs:
    """Tables that remember what was asked of them."""

    session: SparkSession
    asked: list[str] = field(default_factory=list)
    begun: Event = field(default_factory=Event)
    broken: bool = False

    def apart(self) -> "Logs":
        return self

    def exists(self, name: TableName) -> bool:
        return name != NEVER_MADE

    def extent(self, name: TableName) -> tuple[int, int]:
        self.begun.set()
        if self.broken:
            raise OSError
        self.asked.append(f"extent of {name}")
        return 0, 0

    def read(self, name: TableName) -> DataFrame:
        self.asked.append(f"files of {name}")
        return self.session.sql("SELECT 'a' AS bk")


def test_logs_of_tables_that_are_there_are_read_meanwhile(spark: SparkSession) -> None:
    logs = Logs(spark)
    with logs_read_ahead(logs, [RECEIPTS, NEVER_MADE], [HISTORY]):  # type: ignore[arg-type]
        assert logs.begun.wait(10), "not only when this is over"
    assert logs.asked == ["extent of silver.receipts", "extent of silver.history", "files of silver.history"]


def test_a_log_that_cannot_be_read_stops_nobody(spark: SparkSession) -> None:
    logs, done = Logs(spark, broken=True), []
    with logs_read_ahead(logs, [RECEIPTS], [HISTORY]):  # type: ignore[arg-type]
        done.append("what was to be done")
    assert logs.begun.is_set()
    assert done == ["what was to be done"]
