"""Logs read ahead of commits: they are read while something else is done, and nothing that goes wrong there stops it."""

from dataclasses import dataclass, field
from pathlib import Path
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
    folder: str | None = None
    compiled: bool | None = None

    def apart(self) -> "Logs":
        return self

    def exists(self, name: TableName) -> bool:
        return name != NEVER_MADE

    def extent(self, name: TableName) -> tuple[int, int]:
        self.begun.set()
        if self.broken:
            raise OSError
        self.asked.append(f"extent of {name}")
        self.compiled = self.session.conf.get("spark.sql.codegen.factoryMode", "FALLBACK") != "NO_CODEGEN"
        return 0, 0

    def local_path(self, _name: TableName) -> str | None:
        return self.folder

    def read(self, name: TableName) -> DataFrame:
        self.asked.append(f"files of {name}")
        return self.session.sql("SELECT 'a' AS bk")


def test_logs_of_tables_that_are_there_are_read_meanwhile(spark: SparkSession) -> None:
    logs = Logs(spark)
    with logs_read_ahead(logs, [RECEIPTS, NEVER_MADE], [HISTORY]):  # type: ignore[arg-type]
        assert logs.begun.wait(10), "not only when this is over"
    assert logs.asked == ["extent of silver.receipts", "extent of silver.history", "files of silver.history"]


def test_the_log_of_a_table_with_few_files_is_interpreted_and_one_nobody_knows_is_not(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    session.range(1).write.format("delta").save(str(tmp_path / "small"))
    small, elsewhere = Logs(session, folder=str(tmp_path / "small")), Logs(session)
    for logs in (small, elsewhere):
        with logs_read_ahead(logs, [RECEIPTS]):  # type: ignore[arg-type]
            pass
    assert (small.compiled, elsewhere.compiled) == (False, True)
    assert session.conf.get("spark.sql.codegen.factoryMode") == "FALLBACK"


def test_a_log_that_cannot_be_read_stops_nobody(spark: SparkSession) -> None:
    logs, done = Logs(spark, broken=True), []
    with logs_read_ahead(logs, [RECEIPTS], [HISTORY]):  # type: ignore[arg-type]
        done.append("what was to be done")
    assert logs.begun.is_set()
    assert done == ["what was to be done"]
