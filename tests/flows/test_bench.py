"""The benchmarks run to their end: every case at a five hundredth of its keys, each table compared with its rebuild."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.bench import Bench, Row, Size, Window
from benchmarks.cases import CASES
from benchmarks.jobs import read_log, told
from benchmarks.run import table

SMALL = Size(versions=2).scaled(1 / 500)


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """One shared table for all cases; one round, nothing warmed up."""
    return Bench(spark, tmp_path_factory.mktemp("bench"), SMALL, rounds=1, warm_up=0, days=3, verify=True)


@pytest.mark.parametrize("name", CASES)
def test_a_case_measures_both_sides_and_leaves_tables_that_equal_their_rebuild(bench: Bench, name: str) -> None:
    rows = CASES[name](bench)
    assert rows
    for row in rows:
        assert row.karat > 0, row
        assert row.peer > 0, row
        assert row.case in table(rows)


def test_the_table_says_of_each_case_whether_its_bound_holds() -> None:
    rows = [Row("good", 1.0, 2.0, 1.5), Row("slow", 4.0, 2.0, 1.5), Row("only told", 4.0, 2.0, against="upsert")]
    assert table(rows).splitlines()[2:] == [
        "| good | ≤ 1.5 | 1.00 s | MERGE 2.00 s | 0.50 | met |",
        "| slow | ≤ 1.5 | 4.00 s | MERGE 2.00 s | 2.00 | missed |",
        "| only told |  | 4.00 s | upsert 2.00 s | 2.00 |  |",
    ]


def test_jobs_are_told_by_query_with_the_rows_that_were_scanned_in_it(tmp_path: Path) -> None:
    scan = {
        "nodeName": "Scan parquet",
        "simpleString": "FileScan parquet [sk#1,bk#2] Batched: true",
        "metadata": {"Location": "PreparedDeltaFileIndex(1 paths)[file:/lake/bronze/thing]"},
        "metrics": [{"name": "number of output rows", "accumulatorId": 7}],
    }
    unused = {"nodeName": "Sort", "simpleString": "Sort", "metrics": [{"name": "sort time", "accumulatorId": 8}]}
    plan = {"nodeName": "Exchange", "simpleString": "Exchange", "metrics": [{"name": "data size", "accumulatorId": 9}]}
    counted = [{"ID": 7, "Name": "number of output rows", "Value": "1200"}, {"ID": 9, "Name": "data size", "Value": 5}]
    ran = {"spark.sql.execution.id": "3", "spark.jobGroup.id": "a run/bronze.thing"}
    events = [
        {
            "Event": "x.SparkListenerSQLExecutionStart",
            "executionId": 3,
            "time": 1000,
            "description": "karat land bronze.thing (a-run): save",
        },
        {"Event": "x.SparkListenerSQLAdaptiveExecutionUpdate", "executionId": 3, "sparkPlanInfo": {**plan, "children": [scan, unused]}},
        {"Event": "SparkListenerJobStart", "Job ID": 1, "Submission Time": 1500, "Stage IDs": [4], "Properties": ran},
        {"Event": "SparkListenerStageCompleted", "Stage Info": {"Stage ID": 4, "Accumulables": counted}},
        {"Event": "SparkListenerJobEnd", "Job ID": 1, "Completion Time": 2500},
        {"Event": "x.SparkListenerSQLExecutionEnd", "executionId": 3, "time": 3000},
    ]
    events[0]["sparkPlanInfo"] = plan
    (tmp_path / "events_1_app").write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    assert list(told(read_log(tmp_path), Window("half-late", 0.5, 4.5))) == [
        "half-late: 4.0 s, of which 3.0 s without a job; 1 jobs in 1 queries",
        "     2.00 s  at    0.5    1 jobs  bronze.thing  save",
        "      scan bronze/thing (2 columns) 1,200 rows · 1 Exchange",
    ]
