"""A lookback is an interval as Spark writes it, and it looks back."""

from pathlib import Path

import pytest

from karat.config.load import load
from karat.config.problems import ConfigProblems
from tests.support.projects import curated, project_folder


def project(folder: Path, interval: str) -> Path:
    return project_folder(folder, [curated("silver.people", "bronze.people", lookback_interval=interval)])


@pytest.mark.parametrize(
    "interval",
    [
        "2 HOURS",
        "2 hours",
        "1 hour",
        "0 SECONDS",
        "INTERVAL 2 HOURS",
        "interval '2 hours'",
        "1 DAY 30 MINUTES",
        "1 month",
        "3 weeks",
        "'90' MINUTE",
        "INTERVAL '1 02:30:00' DAY TO SECOND",
        "1.5 seconds",
        "250 milliseconds",
    ],
)
def test_an_interval_is_written_as_spark_has_it(tmp_path: Path, interval: str) -> None:
    assert load(project(tmp_path, interval)).curated[0].lookback == interval


@pytest.mark.parametrize(
    "interval",
    [
        "2",
        "HOURS",
        "two hours",
        "2 fortnights",
        "2 HOURS; DROP TABLE x",
        "2 HOURS) OR (1=1",
        "",
        " ",
        "-2 HOURS",
        "INTERVAL '-90' MINUTE",
        "1.5 hours",
    ],
)
def test_an_interval_that_is_none_or_looks_ahead_is_refused(tmp_path: Path, interval: str) -> None:
    with pytest.raises(ConfigProblems) as caught:
        load(project(tmp_path, interval))
    (problem,) = caught.value.problems
    assert problem.path == "tables[0].lookback_interval"
    assert problem.remedy
