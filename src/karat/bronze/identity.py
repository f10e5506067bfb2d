r"""Who a statement is about, what it says, and whether it was heard before: keys and hashes.

    bk               the key's columns as one text, separators escaped: ("a|b", "c") is not ("a", "b|c")
    attr_hash        the state: its non-null tracked attributes as `name=value`; a column that is new and null changes nothing
    statement_hash   what was said: two arrivals with the same one are copies of one statement
    record_hash      the exact row: the statement and the file that brought it

A hash that is on record is never computed again; `HASH_FORMAT` says by which rules it was made.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.hashing import NULL_TEXT, SEPARATOR, canonical, escape, text_of
from karat.temporal.sql import Sql, every, literal

HASH_FORMAT = 1
DELETED_TEXT = "__DELETED__"
PAIR_SEPARATOR = "||"


def with_identity(rows: DataFrame, schema: EntitySchema) -> DataFrame:
    """Each row with who it is about and what tells it from others. Grain: unchanged."""
    # an attribute that is no longer declared is on record still: nobody speaks of it any more
    retired = {name: F.lit(None).cast(kind) for name, kind in schema.attributes.items() if name not in rows.columns}
    complete = rows.withColumns(retired) if retired else rows
    return complete.transform(identified, schema).transform(with_hashes, schema)


def identified(rows: DataFrame, schema: EntitySchema) -> DataFrame:
    """Each row with its business key as one text and its surrogate; both null for a statement of the source itself."""
    texts = ", ".join(canonical(c.quoted(name), kind) for name, kind in schema.key.items())
    has_key = every(f"{c.quoted(name)} IS NOT NULL" for name in schema.key)
    bk = f"if({has_key}, concat_ws({literal(SEPARATOR)}, {texts}), NULL)"
    return rows.withColumns({c.BK: F.expr(bk), c.SK: F.expr(_sha256(bk))})


def attribute_hash(schema: EntitySchema) -> Column:
    """The hash of the state in the row's attribute columns; a delete's covers the deletion alone."""
    return F.expr(_state_hash([_pair(name, schema.attributes[name]) for name in schema.tracked]))


def with_hashes(rows: DataFrame, schema: EntitySchema) -> DataFrame:
    """Each row with `statement_hash` and `record_hash`, and its `attr_hash` as far as its own words go."""
    pairs = {name: f"__karat_pair_{place}" for place, name in enumerate(sorted(schema.attributes))}
    paired = rows.selectExpr("*", *(f"{_pair(name, schema.attributes[name])} AS {pair}" for name, pair in pairs.items()))
    hashed = paired.withColumns(
        {c.STATEMENT_HASH: F.expr(_statement_hash(pairs)), c.ATTR_HASH: F.expr(_state_hash([pairs[name] for name in schema.tracked]))}
    )
    arrived = _joined(f"lower(hex({c.STATEMENT_HASH}))", c.SOURCE_PATH, c.SOURCE_FILE)
    return hashed.withColumn(c.RECORD_HASH, F.expr(_sha256(arrived))).drop(*pairs.values())


def _sha256(text: Sql) -> Sql:
    """32 bytes."""
    return f"unhex(sha2({text}, 256))"


def _state_hash(pairs: Sequence[Sql]) -> Sql:
    state = f"concat_ws({literal(PAIR_SEPARATOR)}, {', '.join(pairs)})" if pairs else "''"
    return _sha256(f"if({c.IS_DELETED}, {literal(DELETED_TEXT)}, {state})")


def _statement_hash(pairs: Mapping[str, Sql]) -> Sql:
    """Key, source, op, times, sequence, and the words. A full row's nulls are left out: a column that is added later changes nothing."""
    words = []
    for name, pair in pairs.items():
        said_null = f"if({c.LOAD_TYPE} = 'FULL', NULL, {literal(f'{_escaped_name(name)}={chr(92)}{NULL_TEXT}')})"
        words.append(f"if(array_contains({c.ASSERTED}, {literal(name)}), coalesce({pair}, {said_null}), NULL)")
    said = f"concat_ws({', '.join((literal(PAIR_SEPARATOR), *words))})"
    moments = [canonical(name, T.TimestampType()) for name in (c.EVENT_TS, c.SNAPSHOT_TS)]
    texts = [canonical(name, T.StringType()) for name in (c.BK, c.SOURCE_SYSTEM, c.OP, c.SEQUENCE, c.LOAD_TYPE)]
    # what a source says about everything it has, it says of one feed: two feeds' extracts of the same time are two statements
    texts.append(f"if({c.BK} IS NULL, {canonical(c.FEED, T.StringType())}, NULL)")
    return _sha256(f"concat_ws({', '.join((literal(SEPARATOR), *texts, *moments, said))})")


def _joined(*texts: Sql) -> Sql:
    return f"concat_ws({literal(SEPARATOR)}, {', '.join(canonical(text, T.StringType()) for text in texts)})"


def _pair(name: str, kind: T.DataType) -> Sql:
    """`name=value`, both escaped; null for null."""
    return f"concat({literal(_escaped_name(name) + '=')}, {escape(text_of(c.quoted(name), kind), chr(92), '|', '=')})"


def _escaped_name(name: str) -> str:
    return name.replace("\\", "\\\\").replace("|", "\\|").replace("=", "\\=")
