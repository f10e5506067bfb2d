r"""Who a statement is about, what it says, and whether it was heard before: keys and hashes.

    bk               the key's columns as one text, separators escaped: ("a|b", "c") is not ("a", "b|c")
    attr_hash        the state: its non-null tracked attributes as `name=value`; a column that is new and null changes nothing
    statement_hash   what was said: two arrivals with the same one are copies of one statement
    record_hash      the exact row: the statement and the file that brought it

A hash that is on record is never computed again; `HASH_FORMAT` says by which rules it was made.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.bronze.terms import Terms
from karat.temporal.columns import (
    ASSERTED,
    ATTR_HASH,
    BK,
    EVENT_TS,
    FEED,
    IS_DELETED,
    LOAD_TYPE,
    OP,
    RECORD_HASH,
    SEQUENCE,
    SK,
    SNAPSHOT_TS,
    SOURCE_FILE,
    SOURCE_PATH,
    SOURCE_SYSTEM,
    STATEMENT_HASH,
    col,
)
from karat.temporal.hashing import NULL_TEXT, SEPARATOR, canonical, text_of

HASH_FORMAT = 1
DELETED_TEXT = "__DELETED__"
PAIR_SEPARATOR = "||"


def identified(rows: DataFrame, terms: Terms) -> DataFrame:
    """Each row with its business key as one text and its surrogate; both null for a statement of the source itself."""
    texts = [canonical(col(name), kind) for name, kind in terms.key.items()]
    has_key = F.lit(True)
    for name in terms.key:
        has_key = has_key & col(name).isNotNull()
    bk = F.when(has_key, F.concat_ws(SEPARATOR, *texts))
    return rows.withColumn(BK, bk).withColumn(SK, sha256(F.col(BK)))


def attribute_hash(terms: Terms) -> Column:
    """The hash of the state in the row's attribute columns; a delete's covers the deletion alone."""
    pairs = [_pair(name, col(name), terms.attributes[name]) for name in terms.tracked]
    state = F.concat_ws(PAIR_SEPARATOR, *pairs) if pairs else F.lit("")
    return sha256(F.when(F.col(IS_DELETED), F.lit(DELETED_TEXT)).otherwise(state))


def with_hashes(rows: DataFrame, terms: Terms) -> DataFrame:
    """Each row with `statement_hash` and `record_hash`, and its `attr_hash` as far as its own words go."""
    return rows.withColumns({STATEMENT_HASH: _statement_hash(terms), ATTR_HASH: attribute_hash(terms)}).withColumn(
        RECORD_HASH, sha256(_joined(F.lower(F.hex(STATEMENT_HASH)), F.col(SOURCE_PATH), F.col(SOURCE_FILE)))
    )


def sha256(text: Column) -> Column:
    """32 bytes."""
    return F.unhex(F.sha2(text, 256))


def _statement_hash(terms: Terms) -> Column:
    """Key, source, op, times, sequence, and the words. A full row's nulls are left out: a column that is added later changes nothing."""
    is_full = F.col(LOAD_TYPE) == "FULL"
    words = []
    for name, kind in sorted(terms.attributes.items()):
        said_null = F.when(~is_full, F.lit(f"{_escaped_name(name)}=\\{NULL_TEXT}"))
        said = F.coalesce(_pair(name, col(name), kind), said_null)
        words.append(F.when(F.array_contains(ASSERTED, name), said))
    moments = [canonical(F.col(name), T.TimestampType()) for name in (EVENT_TS, SNAPSHOT_TS)]
    texts = [canonical(F.col(name), T.StringType()) for name in (BK, SOURCE_SYSTEM, OP, SEQUENCE, LOAD_TYPE)]
    # what a source says about everything it has, it says of one feed: two feeds' extracts of the same time are two statements
    texts.append(F.when(F.col(BK).isNull(), canonical(F.col(FEED), T.StringType())))
    return sha256(F.concat_ws(SEPARATOR, *texts, *moments, F.concat_ws(PAIR_SEPARATOR, *words)))


def _joined(*texts: Column) -> Column:
    return F.concat_ws(SEPARATOR, *(canonical(text, T.StringType()) for text in texts))


def _pair(name: str, value: Column, kind: T.DataType) -> Column:
    """`name=value`, both escaped; null for null."""
    return F.concat(F.lit(_escaped_name(name) + "="), _escaped(text_of(value, kind)))


def _escaped(text: Column) -> Column:
    for letter in ("\\", "|", "="):
        text = F.replace(text, F.lit(letter), F.lit("\\" + letter))
    return text


def _escaped_name(name: str) -> str:
    return name.replace("\\", "\\\\").replace("|", "\\|").replace("=", "\\=")
