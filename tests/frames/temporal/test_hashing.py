"""§3.3.4: values to canonical text to hashes. Each table of cases is one row of many columns, hashed in one job."""

import hashlib
import random
from collections.abc import Mapping

import pytest
from pyspark.sql import SparkSession

from karat.temporal.columns import PK_HASH
from karat.temporal.hashing import hash_of

SEED = 20240613


def test_plain_values_hash_to_the_md5_of_their_texts_joined_by_a_bar(spark: SparkSession) -> None:
    texts = {
        "'C1', 'CRM'": "C1|CRM",
        "'C1'": "C1",
        "'c1', 'CRM'": "c1|CRM",
        "'  C1 ', 'CRM   '": "C1|CRM",
        "'in  side', 'Zoë ✓'": "in  side|Zoë ✓",
        "'', 'CRM'": "|CRM",
        "'   ', 'CRM'": "|CRM",
        "CAST(NULL AS STRING), 'CRM'": "__NULL__|CRM",
        "NULL, 'CRM'": "__NULL__|CRM",
        "CAST(NULL AS TIMESTAMP), CAST(NULL AS DECIMAL(10,2)), CAST(NULL AS BOOLEAN)": "__NULL__|__NULL__|__NULL__",
        "CAST(NULL AS DOUBLE), CAST(NULL AS BINARY), CAST(NULL AS ARRAY<INT>)": "__NULL__|__NULL__|__NULL__",
        "TIMESTAMP'2024-01-02 03:04:05.678901Z'": "2024-01-02 03:04:05.678901",
        "TIMESTAMP'2024-01-02 03:04:05Z'": "2024-01-02 03:04:05.000000",
        "TIMESTAMP'2024-07-02 01:00:00+02:00'": "2024-07-01 23:00:00.000000",
        "TIMESTAMP'1969-12-31 23:59:59.999999Z'": "1969-12-31 23:59:59.999999",
        "TIMESTAMP'9999-12-31 23:59:59Z'": "9999-12-31 23:59:59.000000",
        "TIMESTAMP_NTZ'2024-01-02 03:04:05.678901'": "2024-01-02 03:04:05.678901",
        "DATE'2024-02-29'": "2024-02-29",
        "true, false": "true|false",
        "42, -7, CAST(9000000000 AS BIGINT), CAST(1 AS TINYINT)": "42|-7|9000000000|1",
        "CAST(1.5 AS DOUBLE), CAST(-0.0 AS DOUBLE), CAST(0.0 AS FLOAT)": "1.5|0.0|0.0",
    }
    assert _hashes(spark, list(texts)) == {case: _md5(text) for case, text in texts.items()}


def test_a_decimal_is_written_in_plain_digits_with_six_places(spark: SparkSession) -> None:
    texts = {
        "CAST(1.5 AS DECIMAL(10,1))": "1.500000",
        "CAST(1.5 AS DECIMAL(10,2))": "1.500000",
        "CAST(1.5 AS DECIMAL(18,6))": "1.500000",
        "CAST(12 AS DECIMAL(10,0))": "12.000000",
        "CAST(0 AS DECIMAL(10,0))": "0.000000",
        "CAST(0 AS DECIMAL(10,2))": "0.000000",
        "CAST(-3.25 AS DECIMAL(10,2))": "-3.250000",
        "CAST(-0.01 AS DECIMAL(10,2))": "-0.010000",
        "CAST(0.000001 AS DECIMAL(18,6))": "0.000001",
        "CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0))": "9" * 38 + ".000000",
        "CAST('-123456789012345678901234567890123456.78' AS DECIMAL(38,2))": "-123456789012345678901234567890123456.780000",
    }
    assert _hashes(spark, list(texts)) == {case: _md5(text) for case, text in texts.items()}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_decimal_of_many_places_is_written_plainly_in_any_session(spark: SparkSession, ansi: str) -> None:
    """Outside ANSI mode Spark itself writes `0E-18`: a handed-in session may not change a hash."""
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    texts = {
        "CAST(0 AS DECIMAL(38,18))": "0." + "0" * 18,
        "CAST('0.000000001' AS DECIMAL(38,18))": "0.000000001" + "0" * 9,
        "CAST('-0.00000001' AS DECIMAL(10,8))": "-0.00000001",
        "CAST('12345678901234567890.123456789012345678' AS DECIMAL(38,18))": "12345678901234567890.123456789012345678",
    }
    assert _hashes(session, list(texts)) == {case: _md5(text) for case, text in texts.items()}


def test_a_timestamp_is_written_in_utc_in_any_session(spark: SparkSession) -> None:
    """The transforms are anybody's to use: another session's time zone, even an hour that it has twice, may not change a hash."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    texts = {
        "TIMESTAMP'2024-07-01 23:00:00.000001Z'": "2024-07-01 23:00:00.000001",
        "TIMESTAMP'2024-10-27 00:30:00Z'": "2024-10-27 00:30:00.000000",
        "TIMESTAMP'2024-10-27 01:30:00Z'": "2024-10-27 01:30:00.000000",
        "TIMESTAMP_NTZ'2024-03-31 02:30:00'": "2024-03-31 02:30:00.000000",
    }
    assert _hashes(session, list(texts)) == {case: _md5(text) for case, text in texts.items()}


def test_different_values_have_different_hashes(spark: SparkSession) -> None:
    groups = {
        "the separator inside a value": ["'a|b', 'c'", "'a', 'b|c'", "'a|b|c', ''", "'', 'a|b|c'"],
        "backslashes": [r"'a\\', 'b'", r"'a', '\\b'", r"'a\\|b', ''", r"'a\\\\', 'b'", r"'a', 'b'", r"'a|', 'b'"],
        "a backslash at the end": [r"'a\\', '|b'", r"'a\\|', 'b'", r"'a', '\\|b'", r"'a\\\\', '|b'", r"'a|', '\\b'"],
        "the word for null": ["NULL", "'__NULL__'", r"'\\__NULL__'", r"'\\\\__NULL__'", "'__null__'", "''", "'null'"],
        "the word for null in a pair": ["NULL, 'x'", "'__NULL__', 'x'", "'__NULL__|x', NULL", "NULL, NULL", "'__NULL__|__NULL__', ''"],
        "letters' case": ["'Ann'", "'ann'", "'ANN'"],
        "inner blanks": ["'a b'", "'a  b'", "'ab'"],
        "order": ["'a', 'b'", "'b', 'a'"],
        "microseconds": [f"TIMESTAMP'2024-01-01 00:00:00.00000{digit}Z'" for digit in (0, 1, 2)],
        "signs": [
            "CAST(1.5 AS DOUBLE)",
            "CAST(-1.5 AS DOUBLE)",
            "CAST('NaN' AS DOUBLE)",
            "CAST('Infinity' AS DOUBLE)",
            "CAST(0 AS DOUBLE)",
        ],
        "places": ["CAST('0.1' AS DECIMAL(38,18))", "CAST('0.100000000000000001' AS DECIMAL(38,18))", "CAST('0' AS DECIMAL(38,18))"],
        "bytes": ["X'00'", "X''", "X'0000'", "X'FF'", "CAST(NULL AS BINARY)", "X'C328'", "X'A0A1'"],
        "arrays": ["array('a','b')", "array('b','a')", "array('a,b')", "array('a', NULL)", "array('a')", "CAST(array() AS ARRAY<STRING>)"],
        "nothing, emptiness and a list of nothing": [
            "CAST(NULL AS ARRAY<INT>)",
            "CAST(array() AS ARRAY<INT>)",
            "CAST(array(NULL) AS ARRAY<INT>)",
        ],
        "structs": [
            f"named_struct('a', {a}, 'b', {b})" for a, b in [("1", "2"), ("2", "1"), ("1", "CAST(NULL AS INT)"), ("CAST(NULL AS INT)", "1")]
        ],
        "no struct and a struct of nothing": ["CAST(NULL AS STRUCT<a: INT>)", "CAST(named_struct('a', NULL) AS STRUCT<a: INT>)"],
        "maps": [
            "map('a', 1)",
            "map('a', 2)",
            "map('b', 1)",
            "map('a', 1, 'b', 2)",
            "CAST(map() AS MAP<STRING, INT>)",
            "map('a', CAST(NULL AS INT))",
        ],
        "microseconds inside": [f"array(TIMESTAMP'2024-01-01 00:00:00.00000{digit}Z')" for digit in (0, 1, 2)],
        "microseconds deep inside": [f"named_struct('t', map('k', TIMESTAMP'2024-01-01 00:00:00.00000{digit}Z'))" for digit in (1, 2)],
    }
    hashes = _hashes(spark, [case for cases in groups.values() for case in cases])
    mixed_up = {name: cases for name, cases in groups.items() if len({hashes[case] for case in cases}) < len(cases)}
    assert mixed_up == {}


def test_equal_values_have_equal_hashes(spark: SparkSession) -> None:
    groups = {
        "blanks around": ["'Ann'", "' Ann'", "'Ann  '"],
        "zeros": ["CAST(0.0 AS DOUBLE)", "CAST('-0.0' AS DOUBLE)"],
        "one moment in two zones": ["TIMESTAMP'2024-01-01 12:00:00+02:00'", "TIMESTAMP'2024-01-01 10:00:00Z'"],
        "wider decimals": ["CAST(1.5 AS DECIMAL(10,1))", "CAST(1.50 AS DECIMAL(10,2))", "CAST(1.5 AS DECIMAL(38,6))"],
        "wider numbers": ["CAST(7 AS TINYINT)", "7", "CAST(7 AS BIGINT)"],
        "entries of a map": ["map('a', 1, 'b', 2, 'c', 3)", "map('c', 3, 'a', 1, 'b', 2)"],
        "entries of a map in a struct": ["named_struct('m', map('a', 1, 'b', 2))", "named_struct('m', map('b', 2, 'a', 1))"],
        "entries of a map in an array": ["array(map('a', 1, 'b', 2))", "array(map('b', 2, 'a', 1))"],
        "entries of a map in a map": ["map('x', map('a', 1, 'b', 2))", "map('x', map('b', 2, 'a', 1))"],
        "zeros inside": ["array(CAST(0.0 AS DOUBLE))", "array(CAST('-0.0' AS DOUBLE))"],
    }
    hashes = _hashes(spark, [case for cases in groups.values() for case in cases])
    told_apart = {name: cases for name, cases in groups.items() if len({hashes[case] for case in cases}) > 1}
    assert told_apart == {}


def test_sha256_hashes_the_same_text(spark: SparkSession) -> None:
    texts = {"'C1', 'CRM'": "C1|CRM", "NULL, ' x '": "__NULL__|x", r"'a|b\\'": r"a\|b\\"}
    assert _hashes(spark, list(texts), "sha256") == {case: hashlib.sha256(text.encode()).hexdigest() for case, text in texts.items()}


def test_a_column_is_found_whatever_the_case_of_its_name_and_one_that_is_missing_counts_as_null(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 'C1' AS Id, 'x' AS `a.b`")
    found = rows.select(hash_of(["ID", "a.b"], rows.schema, "md5"), hash_of(["id", "gone"], rows.schema, "md5")).collect()
    assert [tuple(row) for row in found] == [(_md5("C1|x"), _md5("C1|__NULL__"))]


def test_two_tuples_of_nasty_strings_share_a_hash_exactly_when_they_are_equal_but_for_blanks_around(spark: SparkSession) -> None:
    dice = random.Random(SEED)  # noqa: S311 - strings, not secrets
    atoms = ["|", "\\", "_", "__NULL__", "a", "A", " ", "\\|", "|\\", "\\\\", "ü"]

    def part() -> str | None:
        return None if dice.random() < 0.1 else "".join(dice.choice(atoms) for _ in range(dice.randint(0, 3)))

    tuples = [(part(), part(), part()) for _ in range(6_000)]
    rows = spark.createDataFrame(tuples, "a string, b string, c string")
    hashed = rows.select("a", "b", "c", hash_of(["a", "b", "c"], rows.schema, "md5").alias(PK_HASH)).collect()
    meanings: dict[str, set[tuple[str | None, ...]]] = {}
    for *parts, digest in hashed:
        meanings.setdefault(digest, set()).add(tuple(text if text is None else text.strip(" ") for text in parts))
    shared = [sorted(map(str, meaning)) for meaning in meanings.values() if len(meaning) > 1]
    assert shared == [], f"seed {SEED}"
    assert len(meanings) == len(set.union(*meanings.values())) > 1_000, f"seed {SEED}: equal tuples with different hashes"


def _hashes(session: SparkSession, cases: list[str], algorithm: str = "md5") -> Mapping[str, str]:
    """Hash per case; a case is SQL text: the values, separated by commas."""
    rows = session.sql("SELECT " + ", ".join(f"struct({case}) AS c{number}" for number, case in enumerate(cases)))
    flat = rows.select(*(f"c{number}.*" for number in range(len(cases))))
    names = [[f"c{number}_{place}" for place in range(len(rows.schema[number].dataType.names))] for number in range(len(cases))]
    named = flat.toDF(*(name for group in names for name in group))
    found = named.select(*(hash_of(group, named.schema, algorithm) for group in names)).collect()[0]
    return dict(zip(cases, found, strict=True))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
