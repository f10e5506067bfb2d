"""Surrogate keys: one protocol, three ways to make them.

hash        xxhash64 of the natural key, and of the start for versions; two members with one hash are refused
sequence    the highest key so far and counting; another writer's keys make the commit conflict, so none is given twice
identity    Delta's own identity column; the rows are written without a key
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.config.star import RESERVED, Dimension
from karat.errors import ContractBreach
from karat.gold.schema import DURABLE_KEY, VALID_FROM
from karat.temporal.columns import Names, col

BUCKETS: Final = 256
"""Into how many parts new rows are divided to be counted; each part is numbered by itself."""
IS_NEW: Final = "__karat_is_new"
"""Working: whether a row had no surrogate key before."""
_BUCKET: Final = "__karat_bucket"


def durable_key(names: Names) -> Column:
    """The key of a member, whatever its version: never one of the reserved ones."""
    found = F.xxhash64(*map(col, names))
    return F.when(found.isin(*RESERVED), F.xxhash64(found)).otherwise(found)


def with_keys(rows: DataFrame, dimension: Dimension, highest: int) -> DataFrame:
    """The rows with a surrogate key where they had none, and with their durable key. `rows` must give the same rows whenever read."""
    is_reserved = col(dimension.surrogate).isin(*RESERVED)
    member = F.when(is_reserved, col(dimension.surrogate)).otherwise(durable_key(dimension.keys))
    durable = rows.withColumns({DURABLE_KEY: member, IS_NEW: col(dimension.surrogate).isNull()})
    match dimension.strategy:
        case "hash":
            return durable.withColumn(dimension.surrogate, F.coalesce(col(dimension.surrogate), _hashed(dimension)))
        case "sequence":
            return _numbered(durable, dimension, highest)
        case "identity":
            return durable


def _hashed(dimension: Dimension) -> Column:
    """Of a member without history the durable key is the surrogate key too."""
    if not dimension.has_history:
        return F.col(DURABLE_KEY)
    found = F.xxhash64(*map(col, dimension.keys), F.unix_micros(VALID_FROM))
    return F.when(found.isin(*RESERVED), F.xxhash64(found)).otherwise(found)


def _numbered(rows: DataFrame, dimension: Dimension, highest: int) -> DataFrame:
    """New rows counted on from the highest key without gaps, each bucket on its own."""
    is_new = F.col(IS_NEW)
    by_key = [F.col(DURABLE_KEY), *map(col, dimension.keys), F.col(VALID_FROM)]
    divided = rows.withColumn(_BUCKET, F.pmod(F.col(DURABLE_KEY), F.lit(BUCKETS)).cast("int"))
    counts = {row[_BUCKET]: row["count"] for row in divided.where(is_new).groupBy(_BUCKET).count().collect()}
    offsets, reached = [], highest
    for bucket in range(BUCKETS):
        offsets.append(F.lit(reached).cast("bigint"))
        reached += counts.get(bucket, 0)
    within = F.row_number().over(Window.partitionBy(_BUCKET, is_new).orderBy(*by_key))
    number = F.get(F.array(*offsets), F.col(_BUCKET)) + within
    return divided.withColumn(dimension.surrogate, F.when(is_new, number).otherwise(col(dimension.surrogate))).drop(_BUCKET)


def check_collisions(new: DataFrame, held: DataFrame, dimension: Dimension) -> None:
    """Raises `ContractBreach` where a new row's key is another row's already. `new` has only rows that were without one."""
    if dimension.strategy != "hash":
        return
    key = dimension.surrogate
    identity = F.concat_ws(", ", *(col(name).cast("string") for name in dimension.keys))
    named = [col(key).alias("key"), identity.alias("member"), F.col(VALID_FROM).cast("string").alias("start")]
    together = new.select(*named).unionByName(held.join(new.select(col(key)), key, "left_semi").select(*named))
    clashes = together.groupBy("key").agg(F.sort_array(F.collect_set(F.concat_ws(" from ", "member", "start"))).alias("members"))
    found = clashes.where(F.size("members") > 1).take(1)
    if found:
        members = " and ".join(found[0]["members"][:2])
        message = f"{dimension.table}: {members} have the same key {found[0]['key']} by hash"
        raise ContractBreach(message, remedy="use another strategy for this dimension: surrogate_key: {strategy: sequence}")
