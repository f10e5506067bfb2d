"""The benchmarks run to their end: every case at a five hundredth of its size, each table compared with its rebuild."""


import pytest
from pyspark.sql import SparkSession

from benchmarks.bench import Bench, Row, Size
from benchmarks.cases import CASES
from benchmarks.run import table

SMALL = Size().scaled(1 / 500)


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """One shared table for all cases; one round, nothing warmed up."""
    return Bench(spark, tmp_path_factory.mktemp("bench"), SMALL, rounds=1, warm_up=0, verify=True)


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
