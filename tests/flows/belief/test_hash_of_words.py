"""Histories whose rows note no hash of their words, or one that is not theirs: carried on, verified and made whole."""

from datetime import UTC, datetime
from pathlib import Path

from delta import DeltaTable
from pyspark.sql import SparkSession

from karat import Project
from tests.support.beliefs import RULES, declare, expected_history, expected_receipts, in_order, table_rows
from tests.support.entities import CUSTOMER, drop, entity_project


def day(number: int) -> datetime:
    return datetime(2026, 4, number, tzinfo=UTC)


def test_rows_without_their_hash_are_carried_on_and_told_by_verify(spark: SparkSession, tmp_path: Path) -> None:
    folder = entity_project(tmp_path, CUSTOMER)
    declare(folder, RULES)
    said = [{"customer_id": key, "op": "u", "source_event_ts": "2026-03-05", "name": "Ann", "status": "Active"} for key in "ab"]
    drop(folder, "crm/1.ndjson", said)
    project = Project.open(folder, spark)
    assert project.run(now=day(1)).ok
    assert project.verify("silver.customer").equal
    as_before(spark, folder / "lake/silver/customer_history")
    assert "because_hash" not in project.table("silver.customer_history").columns
    assert project.verify("silver.customer").counts == {"differs from the evidence (silver.customer_history)": 2}

    drop(folder, "core/1.ndjson", [{"customer_id": "a", "op": "u", "source_event_ts": "2026-03-02", "status": "Restricted"}])
    assert project.run(now=day(2)).ok
    assert in_order(table_rows(folder, "customer_history")) == in_order(list(expected_history(folder, day(2))))
    assert len(table_rows(folder, "customer_restatements")) == len(expected_receipts(folder, day(1), day(2))) == 2
    noted = {(row["bk"], row["because_hash"] is not None) for row in project.table("silver.customer_history").collect()}
    assert noted == {("a", True), ("b", False)}

    project.maintain("rebuild-from-raw", ["silver.customer"])
    assert project.verify("silver.customer").equal
    assert project.table("silver.customer_history").where("because_hash IS NULL").isEmpty()
    assert project.table("silver.customer_history").count() == len(expected_history(folder, day(2)))

    # a hash left as it was hides nothing from verify
    history = folder / "lake/silver/customer_history"
    spark.sql(f"UPDATE delta.`{history}` SET because = map_filter(because, (name, word) -> false) WHERE bk = 'b'")  # noqa: S608
    assert project.verify("silver.customer").counts == {"differs from the evidence (silver.customer_history)": 1}
    project.maintain("rebuild-from-raw", ["silver.customer"])
    assert project.verify("silver.customer").equal


def as_before(spark: SparkSession, history: Path) -> None:
    """The history as it was made then: the same rows and the same words in its log, without the column."""
    last = DeltaTable.forPath(spark, str(history)).history(1).collect()[0]
    writer = spark.read.format("delta").load(str(history)).drop("because_hash").write.format("delta").mode("overwrite")
    writer.options(overwriteSchema="true", userMetadata=last["userMetadata"]).partitionBy("is_current").save(str(history))
