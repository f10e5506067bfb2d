"""PySpark asks the JVM for a function once, not for every column it builds of it."""

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def test_a_column_costs_one_round_trip_and_its_release(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    send = GatewayClient.send_command

    def noted(client: GatewayClient, command: str, *more: object, **named: object) -> object:
        said.append(command)
        return send(client, command, *more, **named)

    F.col("known by now")
    monkeypatch.setattr(GatewayClient, "send_command", noted)
    columns = [F.col("one"), F.col("two")]
    calls = [command.split("\n")[2] for command in said if command.startswith("c\n")]
    assert calls == ["col", "col"]
    assert not [command for command in said if command.startswith("r\n")], "nothing is looked up again"
    assert spark.range(1).select(F.lit(1).alias("one"), F.lit(2).alias("two")).select(*columns).collect() == [(1, 2)]
