"""A sketch misses no member and lets few others pass."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from karat.sources.lake import measure
from karat.temporal.columns import REASON
from karat.temporal.sketch import FEW_KEYS, bitmaps, joined, may_be_among, sketched


def test_a_sketch_finds_every_member_and_few_others(spark: SparkSession) -> None:
    keys = spark.range(20 * FEW_KEYS).select(
        "id", F.md5(F.col("id").cast("string")).alias("key"), F.lit(None).alias(REASON), F.timestamp_seconds("id").alias("ts")
    )
    few, most = (measure(keys.where(F.col("id") < count), "ts", F.col("key")).keys for count in (FEW_KEYS // 5, FEW_KEYS))
    passing = keys.agg(
        F.count_if((F.col("id") < FEW_KEYS // 5) & F.expr(may_be_among("key", few))),
        F.count_if((F.col("id") >= FEW_KEYS // 5) & F.expr(may_be_among("key", few))),
        F.count_if((F.col("id") < FEW_KEYS) & F.expr(may_be_among("key", most))),
        F.count_if((F.col("id") >= FEW_KEYS) & F.expr(may_be_among("key", most))),
    ).first()
    assert passing is not None
    found, strangers, all_found, more_strangers = passing
    assert (found, all_found) == (FEW_KEYS // 5, FEW_KEYS)
    assert strangers < 20 * FEW_KEYS / 200
    assert more_strangers < 20 * FEW_KEYS / 12


def test_a_batch_of_nobody_has_no_member(spark: SparkSession) -> None:
    nobody = spark.range(0).select(
        F.col("id").cast("string").alias("key"), F.lit(None).alias(REASON), F.timestamp_seconds("id").alias("ts")
    )
    size = measure(nobody, "ts", F.col("key"))
    assert (size.rows, size.highest) == (0, None)
    found = spark.range(100).select(F.expr(may_be_among("CAST(id AS STRING)", size.keys)).alias("found")).distinct().collect()
    assert [row["found"] for row in found] == [False]


def test_sketches_joined_have_the_members_of_each_and_no_others(spark: SparkSession) -> None:
    keys = spark.range(300).select("id", F.col("id").cast("string").alias("key"))
    parts = [keys.where(f"id % 3 = {part}").agg(sketched(F.col("key"))).collect()[0][0] for part in range(3)]
    one, other, neither = map(bitmaps, parts)
    both = may_be_among("key", joined([one, other]))
    assert joined([one]) == one
    assert joined([joined([one, other]), neither]) == bitmaps(keys.agg(sketched(F.col("key"))).collect()[0][0])
    assert keys.where("id % 3 < 2").where(both).count() == 200
    assert keys.where("id % 3 = 2").where(both).count() < 10
