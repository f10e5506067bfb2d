"""Lines of JSON to raw records, exactly as they were written."""

from pathlib import Path

from pyspark.sql import SparkSession

from karat.sources.raw import BROKEN, FIELDS, FILE, LINE, PATH
from tests.frames.contract.feeds import entity_with, lines, raw_of

DIGITS = "12345678901234567890123456789012345678"


def test_every_number_keeps_its_digits(spark: SparkSession, tmp_path: Path) -> None:
    texts = {
        "big": f"{DIGITS}",
        "fraction": f"{DIGITS[:36]}.10",
        "longer": f"{DIGITS}{DIGITS}.{DIGITS}0",
        "beyond": "9007199254740993",
        "cents": "1.10",
        "tiny": "1e-30",
        "zero": "-0",
    }
    path = lines(tmp_path / "a.json", "{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}")
    assert _fields(spark, path) == [texts]


def test_texts_nested_values_and_nulls(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.json",
        r'{"s": "x\u00e9\n\"q\" 1.50", "n": null, "t": true, "e": "", "o": {"k": [1, 2.50, "1.50", {"z": -3.0E-5}], "u": "\u00e9"}}',
        r'{"a.b": 1.0, "with space": "ü|;,\t", "quo\"te": "`", "": "none", "mark": "\u0001x", "empty": {}}',
    )
    assert _fields(spark, path) == [
        {"s": 'xé\n"q" 1.50', "n": None, "t": "true", "e": "", "o": '{"k":[1,2.50,"1.50",{"z":-3.0E-5}],"u":"é"}'},
        {"a.b": "1.0", "with space": "ü|;,\t", 'quo"te': "`", "": "none", "mark": "\x01x", "empty": "{}"},
    ]


def test_what_is_no_object_is_broken_and_what_says_nothing_is_a_tombstone(spark: SparkSession, tmp_path: Path) -> None:
    expected: list[tuple[str | bytes, str | None]] = [
        ("null", None),
        ("  null ", None),
        ("", None),
        ("   ", None),
        ("[1, 2]", "a JSON array, where an object was expected"),
        ("12", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ("hello", "not a JSON object"),
        ('{"a": 1', "a line that is not exactly one JSON object"),
        ('{"a": 1} x', "a line that is not exactly one JSON object"),
        ('{"a": 1}{"a": 2}', "a line that is not exactly one JSON object"),
        ('{"a": 1},{"a": 2}', "a line that is not exactly one JSON object"),
        ('{"a": 1.}', "a line that is not exactly one JSON object"),
        ('{"a": 01.5}', "a line that is not exactly one JSON object"),
        ('{"a": 1.5-2}', "a line that is not exactly one JSON object"),
        ('{"a": NaN}', "a line that is not exactly one JSON object"),
        ("{'a': 1}", "a line that is not exactly one JSON object"),
        ('{"a": 1, "a": 2.50}', "a JSON object that says the same field twice"),
        (b'{"a": "\xff"}', "not UTF-8"),
    ]
    path = lines(tmp_path / "a.json", *(line for line, _ in expected))
    _, feed = entity_with({})
    rows = raw_of(spark, feed, path).select(LINE, FIELDS, BROKEN).collect()
    assert [row[BROKEN] for row in rows] == [reason for _, reason in expected]
    assert all(row[FIELDS] is None for row in rows)
    assert rows[-1][LINE] == '{"a": "\ufffd"}'


def test_hostile_lines_are_read_like_any_other(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.json",
        b"\xef\xbb\xbf" + b'{"i": "bom"}',
        '{"i": "escapes", "v": "' + "\\n" * 500_000 + '", "n": 1.50}',
        '{"i": "texts", "v": [' + ",".join(['"x"'] * 100_000) + '], "n": 1.50}',
        '{"i": "numbers", "v": [' + ",".join(["1.50"] * 100_000) + '], "n": 1.50}',
        '{"i": "crlf", "n": 1.50}\r',
        '{"i": "\u2028\u0085\U0001f600", "n": 1.50}',
    )
    _, feed = entity_with({})
    rows = raw_of(spark, feed, path).selectExpr(f"{FIELDS}['i'] i", f"{FIELDS}['n'] n", f"length({FIELDS}['v']) v", BROKEN).collect()
    assert [tuple(row) for row in rows] == [
        ("bom", None, None, None),
        ("escapes", "1.50", 500_000, None),
        ("texts", "1.50", 400_001, None),
        ("numbers", "1.50", 500_001, None),
        ("crlf", "1.50", None, None),
        ("\u2028\u0085\U0001f600", "1.50", None, None),
    ]


def test_a_record_knows_its_file_whatever_its_name(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a+b %20 [x]" / "day=1"
    folder.mkdir(parents=True)
    path = lines(folder / "ü {a,b}*?.json", {"a": 1})
    _, feed = entity_with({})
    row = raw_of(spark, feed, path).collect()[0]
    assert (row[PATH], row[FILE]) == (str(path), "ü {a,b}*?.json")


def _fields(spark: SparkSession, path: Path) -> list[dict[str, str | None]]:
    _, feed = entity_with({})
    return [row[FIELDS] for row in raw_of(spark, feed, path).select(FIELDS, LINE).collect()]
