"""Whatever is wrong with a table is one sentence about that table: nothing is half-written and the others go on."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from karat import Project
from karat.project import Report, StageReport
from karat.temporal.moments import interval
from tests.support.projects import column_names, curated, exists, held, land, project_folder, versions

PEOPLE = """
    id:string | source_system:string | name:string | ingestion_ts:timestamp
    1         | CRM                  | Ann         | 2026-01-01 10:00:00
    2         | CRM                  | Bob         | 2026-01-01 11:00:00
"""

SQL = {
    "unparsable.sql": "SELEC * FRM source_incremental",
    "statement.sql": "DROP TABLE source_incremental",
    "insertion.sql": "INSERT INTO source_incremental SELECT * FROM source_incremental",
    "closing.sql": "SELECT * FROM source_incremental) AS a; DROP TABLE (b",
    "empty.sql": "\n",
    "comment.sql": "-- to be written",
    "no_such_column.sql": "SELECT *, surname FROM source_incremental",
    "no_such_table.sql": "SELECT * FROM source_incremental JOIN bronze_of_nobody USING (id)",
    "no_such_upper.sql": "SELECT * FROM NOBODYS_TABLE",
    "without_key.sql": "SELECT name, source_system, ingestion_ts FROM source_incremental",
    "twice.sql": "SELECT *, id AS name FROM source_incremental",
    "not_a_number.sql": "SELECT *, CAST(name AS INT) AS number FROM source_incremental",
    "ends_politely.sql": "SELECT id, source_system, name, ingestion_ts FROM source_incremental;\n-- the end\n",
}

BROKEN = {
    "missing_file": ("there.sql", ["sql/there.sql", "cannot be read"]),
    "not_text": ("latin1.sql", ["sql/latin1.sql", "UTF-8"]),
    "unparsable": ("unparsable.sql", ["does not parse"]),
    "statement": ("statement.sql", ["does not parse"]),
    "insertion": ("insertion.sql", ["does not parse"]),
    "closing": ("closing.sql", ["does not parse"]),
    "empty": ("empty.sql", ["does not parse"]),
    "comment": ("comment.sql", ["does not parse"]),
    "no_such_column": ("no_such_column.sql", ["surname"]),
    "no_such_table": ("no_such_table.sql", ["bronze_of_nobody"]),
    "no_such_upper": ("no_such_upper.sql", ["NOBODYS_TABLE", "cannot be found"]),
    "without_key": ("without_key.sql", ["column id", "the transformation of silver.without_key"]),
    "twice": ("twice.sql", ["name"]),
    "not_a_number": ("not_a_number.sql", ["cannot be cast", "INT"]),
}
"""Target to its SQL file and the words its error must have."""

MISDECLARED = {
    "unknown_source": ({"source_table": "bronze.nobody"}, ["no table bronze.nobody"]),
    "text_watermark": ({"watermark_column": "name"}, ["watermark column name", "string", "not a timestamp"]),
    "absent_watermark": ({"watermark_column": "seen_at"}, ["column seen_at", "bronze.people"]),
    "absent_key": ({"business_key_columns": ["number"]}, ["column number", "bronze.people"]),
    "absent_tracked": ({"track_columns": ["name", "street", "city"]}, ["columns street, city", "bronze.people"]),
    "absent_order": ({"dedup_order_columns": ["ingestion_ts DESC", "_kafka_offset DESC"]}, ["_kafka_offset"]),
    "absent_start": ({"effective_from_column": "changed_at"}, ["column changed_at", "bronze.people"]),
}
"""Target to what its declaration says wrongly and the words its error must have."""

DEPENDENT = {"behind": "silver.unparsable", "far_behind": "silver.behind"}
FAILED = sorted([*BROKEN, *MISDECLARED])
WORDS = {name: words for name, (_, words) in (*BROKEN.items(), *MISDECLARED.items())}
JAVA = ("Traceback", "org.apache", "at java", "java.", "scala.", "Py4J", "SQLSTATE", "\n\tat ", "== SQL ==", "__karat")


@dataclass(frozen=True)
class Ran:
    folder: Path
    report: Report

    def stage(self, name: str) -> StageReport:
        return next(stage for stage in self.report.stages if stage.name == f"silver.{name}")


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """One run over every broken table and two good ones, the second of which comes last."""
    folder = project_folder(
        tmp_path_factory.mktemp("broken"),
        [
            curated("silver.good", "bronze.people"),
            *(
                curated(f"silver.{name}", "bronze.people", transformation_sql_path=f"${{workspace.file_path}}/sql/{file}")
                for name, (file, _) in BROKEN.items()
            ),
            *(curated(f"silver.{name}", **{"source": "bronze.people", **wrong}) for name, (wrong, _) in MISDECLARED.items()),
            *(curated(f"silver.{name}", source) for name, source in DEPENDENT.items()),
            curated("silver.polite", "bronze.people", scd_type=1, transformation_sql_path="sql/ends_politely.sql"),
        ],
        sql=SQL,
    )
    (folder / "sql" / "latin1.sql").write_bytes("SELECT *, 'é' AS accent FROM source_incremental".encode("latin-1"))
    land(folder, "bronze.people", PEOPLE)
    return Ran(folder, Project.open(folder, spark).run())


@pytest.mark.parametrize("name", FAILED)
def test_a_broken_table_fails_with_one_clear_sentence(ran: Ran, name: str) -> None:
    stage = ran.stage(name)
    assert stage.status == "failed"
    assert stage.error is not None
    sentence, _, remedy = stage.error.partition("\n")
    assert all(word in sentence for word in WORDS[name]), stage.error
    assert not [word for word in JAVA if word in stage.error], stage.error
    assert remedy.strip().startswith("remedy: ")
    assert "\n" not in remedy.strip()
    assert "fault of Karat" not in stage.error


@pytest.mark.parametrize("name", [*FAILED, *DEPENDENT])
def test_a_broken_table_leaves_nothing_half_written(ran: Ran, name: str) -> None:
    assert not exists(ran.folder, f"silver.{name}")
    assert not exists(ran.folder, f"silver.{name}_quarantine")


@pytest.mark.parametrize(("name", "culprit"), [("behind", "silver.unparsable"), ("far_behind", "silver.behind")])
def test_what_depends_on_a_broken_table_is_skipped_and_says_so(ran: Ran, name: str, culprit: str) -> None:
    stage = ran.stage(name)
    assert stage.status == "skipped"
    assert stage.error is not None
    assert f"skipped because {culprit} did not succeed" in stage.error


def test_the_other_tables_go_on_and_the_run_is_not_ok(ran: Ran) -> None:
    assert not ran.report.ok
    assert {stage.name for stage in ran.report.stages if stage.status == "succeeded"} == {"silver.good", "silver.polite"}
    assert held(ran.folder, "silver.good", "id", "name", "is_current") == [("1", "Ann", True), ("2", "Bob", True)]
    assert held(ran.folder, "silver.polite", "id", "name") == [("1", "Ann"), ("2", "Bob")]


def test_every_table_has_an_audit_row_with_its_error(ran: Ran) -> None:
    audit = held(ran.folder, "silver.curation_audit_log", "table_name", "status", "error_message")
    expected = {f"silver.{name}": "failed" for name in FAILED} | {f"silver.{name}": "skipped" for name in DEPENDENT}
    assert {str(name): status for name, status, _ in audit} == {**expected, "silver.good": "succeeded", "silver.polite": "succeeded"}
    assert len(audit) == len(expected) + 2
    errors = {str(name): str(error) for name, _, error in audit if error is not None}
    assert errors.keys() == expected.keys()
    for name in FAILED:
        assert all(word in errors[f"silver.{name}"] for word in WORDS[name])
        assert not [word for word in JAVA if word in errors[f"silver.{name}"]]


def test_a_failed_table_has_no_watermark_in_the_control_table(ran: Ran) -> None:
    control = held(ran.folder, "silver.curation_control", "table_name", "watermark_value", "last_run_status")
    assert ("silver.good", "2026-01-01 11:00:00", "succeeded") in control
    assert ("silver.unparsable", None, "failed") in control
    assert ("silver.behind", None, "skipped") in control


def test_spark_understands_every_interval_that_check_accepts(spark: SparkSession) -> None:
    """In hours before midnight of the second of January."""
    hours = {
        "2 HOURS": 2,
        "interval '2 hours'": 2,
        "INTERVAL 2 HOURS": 2,
        "1 DAY 30 MINUTES": 24.5,
        "1 week": 168,
        "'90' MINUTE": 1.5,
        "INTERVAL '1 02:30:00' DAY TO SECOND": 26.5,
        "1800.0 seconds": 0.5,
        "0 SECONDS": 0,
        "1 month": 31 * 24,
    }
    midnight = F.lit("2026-01-02 00:00:00").cast("timestamp")
    row = spark.range(1).select(*(((midnight - (midnight - interval(text))).cast("long") / 3600).alias(text) for text in hours)).first()
    assert row is not None
    assert row.asDict() == hours


def test_a_lake_with_rows_nobody_can_place_and_columns_nobody_expected(spark: SparkSession, tmp_path: Path) -> None:
    """Two runs over five tables: null keys and watermarks from the start, new and changed columns in the second."""
    folder = project_folder(
        tmp_path,
        [
            curated("silver.nulls", "bronze.nulls"),
            curated("silver.made_null", "bronze.people", scd_type=1, transformation_sql_path="sql/made_null.sql"),
            curated("silver.strict", "bronze.people"),
            curated("silver.open", "bronze.people", schema_evolution="add"),
            curated("silver.typed", "bronze.typed", schema_evolution="add"),
        ],
        sql={"made_null.sql": "SELECT nullif(id, '2') AS id, source_system, name, ingestion_ts FROM source_incremental"},
    )
    land(folder, "bronze.people", PEOPLE)
    land(
        folder,
        "bronze.nulls",
        """
        id:string | source_system:string | name:string | ingestion_ts:timestamp
        1         | CRM                  | Ann         | 2026-01-01 10:00:00
        -         | CRM                  | no key      | 2026-01-01 10:00:00
        3         | -                    | no system   | 2026-01-01 10:00:00
        4         | CRM                  | no time     | -
        """,
    )
    land(folder, "bronze.typed", "id:string|source_system:string|n:int|ingestion_ts:timestamp\n1|CRM|7|2026-01-01 10:00:00")
    project = Project.open(folder, spark)
    first = {stage.name: stage for stage in project.run().stages}

    # a row that cannot be placed is kept with its reason, the rest goes on
    assert (first["silver.nulls"].status, first["silver.nulls"].rows["quarantined"]) == ("succeeded", 3)
    assert held(folder, "silver.nulls", "id", "name") == [("1", "Ann")]
    assert held(folder, "silver.nulls_quarantine", "reason", "rule", "feed", "replayed_by") == [
        ("business key is null: id", "business key is null", "bronze.nulls", None),
        ("business key is null: source_system", "business key is null", "bronze.nulls", None),
        ("watermark is null: ingestion_ts", "watermark is null", "bronze.nulls", None),
    ]
    originals = [str(row[0]) for row in held(folder, "silver.nulls_quarantine", "original")]
    assert sum('"name":"no time","ingestion_ts":null' in original for original in originals) == 1
    assert (first["silver.made_null"].rows["quarantined"], held(folder, "silver.made_null", "id")) == (1, [("1",)])
    before = {name: versions(folder, name) for name in ("silver.strict", "silver.typed", "silver.nulls", "silver.nulls_quarantine")}

    land(
        folder,
        "bronze.people",
        """
        id:string | source_system:string | name:string | ingestion_ts:timestamp | street:string
        1         | CRM                  | Ann Lee     | 2026-01-02 10:00:00    | High St
        """,
    )
    typed = "id:string|source_system:string|n:string|ingestion_ts:timestamp\n1|CRM|seven|2026-01-02 10:00:00"
    land(folder, "bronze.typed", typed, mode="overwrite")
    second = {stage.name: stage for stage in project.run().stages}

    # a new column: refused with its name, or added; a changed type: refused with both types
    assert second["silver.strict"].status == "failed"
    assert "silver.strict has no column street" in str(second["silver.strict"].error)
    assert "schema_evolution: add" in str(second["silver.strict"].error)
    assert second["silver.typed"].status == "failed"
    assert "column n of silver.typed is int, the batch has string" in str(second["silver.typed"].error)
    assert second["silver.open"].status == "succeeded"
    assert "street" in column_names(folder, "silver.open")
    assert held(folder, "silver.open", "id", "name", "street", "is_current") == [
        ("1", "Ann", None, False),
        ("1", "Ann Lee", "High St", True),
        ("2", "Bob", None, True),
    ]

    # what failed and what was only read again committed nothing
    assert (second["silver.nulls"].status, second["silver.nulls"].rows["quarantined"]) == ("unchanged", 0)
    assert {name: versions(folder, name) for name in before} == before
    marks = {str(name): mark for name, mark in held(folder, "silver.curation_control", "table_name", "watermark_value")}
    assert (marks["silver.strict"], marks["silver.typed"]) == ("2026-01-01 11:00:00", "2026-01-01 10:00:00")
    assert marks["silver.open"] == "2026-01-02 10:00:00"
