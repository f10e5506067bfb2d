"""Documents kept whole, attributes taken out by paths."""

import json
from pathlib import Path

from pyspark.sql import SparkSession

from tests.frames.contract.feeds import by, files, lines, stated

PAYLOAD = {"envelope": "payload", "extraction_version": "v1", "load_type": "PARTIAL"}


def test_attributes_come_out_of_json_documents_by_path(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.json",
        '{"header": {"id": "C1", "at": "2026-03-01T09:00:00Z"},'
        ' "body": {"names": ["Jane", "J."], "amount": 1234567890123456789012345678901234.10}}',
        '{"header": {"id": "C2", "at": "2026-03-02"}, "body": {"names": [], "amount": null}}',
        '{"header": {"id": "C3"',
        "null",
    )
    feed = {
        **PAYLOAD,
        "event_time": "$.header.at",
        "map": {"id": "$.header.id", "name": "$.body.names[0]", "amount": "$.body.amount", "status": "upper(_file)"},
    }
    rows = stated(spark, path, feed, attributes={"name": "string", "amount": "decimal(38,2)", "status": "string"})
    first, second = by(rows)["C1"], by(rows)["C2"]
    assert (first.name, str(first.amount), first.status, first.extraction_version) == (
        "Jane",
        "1234567890123456789012345678901234.10",
        "A.JSON",
        "v1",
    )
    assert first.payload == path.read_text().splitlines()[0]
    assert (first.asserted_columns, second.asserted_columns, first.extra) == (["name", "amount", "status"], ["amount", "status"], None)
    assert [(row["__karat_kind"], row["__karat_rule"]) for row in rows] == [
        ("row", None),
        ("row", None),
        ("refused", "unparsable"),
        ("ignored", None),
    ]


def test_a_null_in_a_document_is_said_and_what_is_not_there_is_not(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.json",
        {"id": "1", "at": "2026-03-01", "body": {"name": None}},
        {"id": "2", "at": "2026-03-01", "body": None},
        {"id": "3", "at": "2026-03-01"},
    )
    feed = {**PAYLOAD, "event_time": "$.at", "map": {"id": "$.id", "name": "$.body.name", "status": "$['body'].status"}}
    rows = stated(spark, path, feed, attributes={"name": "string", "status": "string"})
    assert {row.id: row.asserted_columns for row in rows} == {"1": ["name"], "2": ["name", "status"], "3": []}


def test_attributes_come_out_of_xml_files_by_xpath(spark: SparkSession, tmp_path: Path) -> None:
    texts = {
        "1.xml": '<?xml version="1.0"?>\n<c><id no="7">C1</id><name>Jane &amp; Co</name><at>2026-03-01</at><address/></c>',
        "2.xml": "<c><id>C2</id><at>2026-03-01</at>",
        "3.xml": "\ufeff<c xmlns='urn:x'><id>C3</id><at>2026-03-01</at><!-- none --></c>",
        "4.xml": "no document",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    feed = {
        **PAYLOAD,
        "from": files("xml"),
        "event_time": "/c/at",
        "map": {"id": "/c/id", "name": "/c/name", "address": "/c/address", "status": "/c/id/@no"},
    }
    rows = sorted(stated(spark, tmp_path, feed), key=lambda row: row.source_file)
    assert [(row.id, row.name, row.address, row.status, row.asserted_columns) for row in rows if row["__karat_kind"] == "row"] == [
        ("C1", "Jane & Co", "", "7", ["name", "address", "status"]),
        ("C3", None, None, None, []),
    ]
    assert [row["__karat_reason"] for row in rows] == [None, "a document that is not XML", None, "a document that is not XML"]
    assert [row["__karat_original"] for row in rows] == [None, texts["2.xml"], None, texts["4.xml"]]


def test_a_document_may_be_a_column_among_others(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,ts,body,more\nC1,2026-03-01,"{""name"": ""Jane""}",x\nC2,2026-03-01,not json,y\n')
    feed = {**PAYLOAD, "from": files("csv"), "document": "body", "map": {"name": "$.name", "status": "lower(id)"}}
    found = by(stated(spark, tmp_path, feed))
    assert (found["C1"].name, found["C1"].status, found["C1"].payload) == ("Jane", "c1", '{"name": "Jane"}')
    refused = found[None]
    assert refused["__karat_reason"] == "a document that is not JSON"
    assert json.loads(refused["__karat_original"])["id"] == "C2"


def test_text_is_a_document_a_line(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(tmp_path / "a.txt", "C1|2026-03-01|Jane", "", "C2|bad|Bea")
    feed = {
        **PAYLOAD,
        "from": files("text"),
        "event_time": "split(payload, '[|]')[1]",
        "map": {"id": "split(payload, '[|]')[0]", "name": "split(payload, '[|]')[2]"},
    }
    rows = stated(spark, path, feed)
    assert [(row.id, row.name, row["__karat_kind"], row["__karat_rule"]) for row in rows] == [
        ("C1", "Jane", "row", None),
        (None, None, "ignored", None),
        ("C2", "Bea", "refused", "event time"),
    ]
