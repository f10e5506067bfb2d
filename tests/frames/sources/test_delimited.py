"""Delimited files to raw records: each file by its own header."""

import gzip
from pathlib import Path

from pyspark.sql import SparkSession

from karat.sources.raw import BROKEN, FIELDS, FILE, LINE
from tests.frames.contract.feeds import entity_with, files, raw_of


def test_files_are_read_by_their_own_headers(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("id,name\n1,Ann\n")
    (tmp_path / "2.csv").write_text("name,id\nBea,2\n")
    (tmp_path / "3.csv").write_text("id,name,extra col\n3,Cat,x\n")
    (tmp_path / "4.csv").write_text("id,name\n4,Dan\n")
    (tmp_path / "5.csv").write_text("")
    (tmp_path / "6.csv").write_text("id,name\n")
    with gzip.open(tmp_path / "7.csv.gz", "wt") as packed:
        packed.write("name,id\nEve,7\n")
    (tmp_path / "8.csv").write_bytes(b"\xef\xbb\xbfid,name\r\n8,Fay\r\n")
    assert _fields(spark, tmp_path) == [
        {"id": "1", "name": "Ann"},
        {"name": "Bea", "id": "2"},
        {"id": "3", "name": "Cat", "extra col": "x"},
        {"id": "4", "name": "Dan"},
        {"name": "Eve", "id": "7"},
        {"id": "8", "name": "Fay"},
    ]


def test_cells_are_texts_and_nothing_is_not_an_empty_text(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text(
        'id,"a ""q"" b","c, d",e.f\n1,"",,007\n2,"two\nlines","x,""y""",1.10\n3, padded ,\\,é\n\n4,NULL,null,""\n'
    )
    assert _fields(spark, tmp_path) == [
        {"id": "1", 'a "q" b': "", "c, d": None, "e.f": "007"},
        {"id": "2", 'a "q" b': "two\nlines", "c, d": 'x,"y"', "e.f": "1.10"},
        {"id": "3", 'a "q" b': " padded ", "c, d": "\\", "e.f": "é"},
        {"id": "4", 'a "q" b': "NULL", "c, d": "null", "e.f": ""},
    ]


def test_a_row_of_another_width_is_broken_and_keeps_its_text(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n3\n4,5,6\n")
    (tmp_path / "2.csv").write_text("a,b,a\n1,2,3\n")
    _, feed = entity_with({"from": files("csv")})
    rows = raw_of(spark, feed, tmp_path).select(FILE, LINE, FIELDS, BROKEN).collect()
    assert [tuple(row) for row in rows] == [
        ("1.csv", None, {"a": "1", "b": "2"}, None),
        ("1.csv", "3", None, "not 2 cells, as the header has"),
        ("1.csv", "4,5,6", None, "not 2 cells, as the header has"),
        ("2.csv", '["1","2","3"]', None, "the header names 'a' twice"),
    ]
    assert raw_of(spark, feed, tmp_path).count() == 4


def test_the_readers_options_are_spark_s_own(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_bytes("id;'näme'\n1;'a;b'\n2;-\n".encode("latin-1"))
    assert _fields(spark, tmp_path, sep=";", quote="'", encoding="ISO-8859-1", nullValue="-") == [
        {"id": "1", "näme": "a;b"},
        {"id": "2", "näme": None},
    ]
    (tmp_path / "1.csv").write_text("# remark\n1\t2\n")
    assert _fields(spark, tmp_path, sep="\\t", header=False, comment="#") == [{"_c0": "1", "_c1": "2"}]


def _fields(spark: SparkSession, path: Path, **options: object) -> list[dict[str, str | None]]:
    _, feed = entity_with({"from": files("csv", **options)})
    return [row[FIELDS] for row in raw_of(spark, feed, path).orderBy(FILE).collect()]
