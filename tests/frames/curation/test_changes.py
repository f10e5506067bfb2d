"""A batch against what is held: what the target holds once the acts are done. One case per key, one job per test."""

from pyspark.sql import SparkSession

from karat.config.resolved import OrderBy
from karat.curation.changes import state_changes, version_changes
from karat.temporal.columns import ACTION, PK_HASH, REASON
from tests.support.curated import after, batch_of, curated_table, held_of
from tests.support.frames import frame, rows_of

VERSIONS = ("id", "system", "name", "start", "end", "current")
OPEN = "9999-12-31 23:59:59 | true "


def test_a_change_closes_the_version_it_ends_and_opens_one(spark: SparkSession) -> None:
    table = curated_table()
    held = held_of(
        frame(
            spark,
            f"""
        id:string              | system:string | name:string | seq:int | start:timestamp | end:timestamp       | current:boolean
        nothing changed        | CRM           | Ann         | 1       | 2024-01-01      | {OPEN}
        only the seq changed   | CRM           | Ann         | 1       | 2024-01-01      | {OPEN}
        a change               | CRM           | Ann         | 1       | 2024-01-01      | {OPEN}
        letters' case          | CRM           | Ann         | 1       | 2024-01-01      | {OPEN}
        to null                | CRM           | Ann         | 1       | 2024-01-01      | {OPEN}
        from null              | CRM           | -           | 1       | 2024-01-01      | {OPEN}
        null stays             | CRM           | -           | 1       | 2024-01-01      | {OPEN}
        null to its word       | CRM           | -           | 1       | 2024-01-01      | {OPEN}
        older                  | CRM           | Ann         | 1       | 2024-01-05      | {OPEN}
        older and the same     | CRM           | Ann         | 1       | 2024-01-05      | {OPEN}
        equal time, higher seq | CRM           | Ann         | 1       | 2024-01-05      | {OPEN}
        equal time, lower seq  | CRM           | Ann         | 9       | 2024-01-05      | {OPEN}
        by a microsecond       | CRM           | Ann         | 1       | 2024-01-05      | {OPEN}
        another system         | Admin         | Ann         | 1       | 2024-01-01      | {OPEN}
    """,
        ),
        table,
    )
    batch = batch_of(
        frame(
            spark,
            """
        id:string              | system:string | name:string | ts:timestamp                | seq:int
        nothing changed        | CRM           | Ann         | 2024-01-05                  | 2
        only the seq changed   | CRM           | Ann         | 2024-01-01                  | 2
        a change               | CRM           | Bea         | 2024-01-05                  | 2
        letters' case          | CRM           | ANN         | 2024-01-05                  | 2
        to null                | CRM           | -           | 2024-01-05                  | 2
        from null              | CRM           | Ann         | 2024-01-05                  | 2
        null stays             | CRM           | -           | 2024-01-05                  | 2
        null to its word       | CRM           | __NULL__    | 2024-01-05                  | 2
        older                  | CRM           | Bea         | 2024-01-01                  | 2
        older and the same     | CRM           | Ann         | 2024-01-01                  | 2
        equal time, higher seq | CRM           | Bea         | 2024-01-05                  | 2
        equal time, lower seq  | CRM           | Bea         | 2024-01-05                  | 2
        by a microsecond       | CRM           | Bea         | 2024-01-05 00:00:00.000001  | 2
        another system         | CRM           | Bea         | 2024-01-05                  | 2
        new                    | CRM           | Ann         | 2024-01-05                  | 2
        new and null           | CRM           | -           | 2024-01-05                  | 2
    """,
        ),
        table,
    )
    expected = frame(
        spark,
        f"""
        id:string              | system:string | name:string | start:timestamp            | end:timestamp               | current:boolean
        nothing changed        | CRM           | Ann         | 2024-01-01                 | {OPEN}
        only the seq changed   | CRM           | Ann         | 2024-01-01                 | {OPEN}
        a change               | CRM           | Ann         | 2024-01-01                 | 2024-01-05                  | false
        a change               | CRM           | Bea         | 2024-01-05                 | {OPEN}
        letters' case          | CRM           | Ann         | 2024-01-01                 | 2024-01-05                  | false
        letters' case          | CRM           | ANN         | 2024-01-05                 | {OPEN}
        to null                | CRM           | Ann         | 2024-01-01                 | 2024-01-05                  | false
        to null                | CRM           | -           | 2024-01-05                 | {OPEN}
        from null              | CRM           | -           | 2024-01-01                 | 2024-01-05                  | false
        from null              | CRM           | Ann         | 2024-01-05                 | {OPEN}
        null stays             | CRM           | -           | 2024-01-01                 | {OPEN}
        null to its word       | CRM           | -           | 2024-01-01                 | 2024-01-05                  | false
        null to its word       | CRM           | __NULL__    | 2024-01-05                 | {OPEN}
        older                  | CRM           | Ann         | 2024-01-05                 | {OPEN}
        older and the same     | CRM           | Ann         | 2024-01-05                 | {OPEN}
        equal time, higher seq | CRM           | Ann         | 2024-01-05                 | 2024-01-05                  | false
        equal time, higher seq | CRM           | Bea         | 2024-01-05                 | {OPEN}
        equal time, lower seq  | CRM           | Ann         | 2024-01-05                 | {OPEN}
        by a microsecond       | CRM           | Ann         | 2024-01-05                 | 2024-01-05 00:00:00.000001  | false
        by a microsecond       | CRM           | Bea         | 2024-01-05 00:00:00.000001 | {OPEN}
        another system         | Admin         | Ann         | 2024-01-01                 | {OPEN}
        another system         | CRM           | Bea         | 2024-01-05                 | {OPEN}
        new                    | CRM           | Ann         | 2024-01-05                 | {OPEN}
        new and null           | CRM           | -           | 2024-01-05                 | {OPEN}
    """,
    )
    assert after(version_changes(batch, held, table), held, table, *VERSIONS) == rows_of(expected, *VERSIONS)


def test_a_row_replaces_the_held_one_unless_it_is_older(spark: SparkSession) -> None:
    table = curated_table(scd_type=1, tracked=None)
    held = held_of(
        frame(
            spark,
            """
        id:string              | system:string | name:string | ts:timestamp | seq:int
        told again             | CRM           | Ann         | 2024-01-05   | 1
        newer                  | CRM           | Ann         | 2024-01-05   | 1
        newer and the same     | CRM           | Ann         | 2024-01-05   | 1
        older                  | CRM           | Ann         | 2024-01-05   | 1
        equal time, higher seq | CRM           | Ann         | 2024-01-05   | 1
        equal time, lower seq  | CRM           | Ann         | 2024-01-05   | 9
        to null                | CRM           | Ann         | 2024-01-05   | 1
        another system         | Admin         | Ann         | 2024-01-05   | 1
        time unknown           | CRM           | Ann         | -            | 1
    """,
        ),
        table,
    )
    batch = batch_of(
        frame(
            spark,
            """
        id:string              | system:string | name:string | ts:timestamp | seq:int
        told again             | CRM           | Ann         | 2024-01-05   | 1
        newer                  | CRM           | Bea         | 2024-01-09   | 2
        newer and the same     | CRM           | Ann         | 2024-01-09   | 2
        older                  | CRM           | Bea         | 2024-01-01   | 2
        equal time, higher seq | CRM           | Bea         | 2024-01-05   | 2
        equal time, lower seq  | CRM           | Bea         | 2024-01-05   | 2
        to null                | CRM           | -           | 2024-01-09   | 2
        another system         | CRM           | Bea         | 2024-01-09   | 2
        time unknown           | CRM           | Bea         | 2024-01-01   | 2
        new                    | CRM           | Ann         | 2024-01-05   | 2
    """,
        ),
        table,
    )
    expected = frame(
        spark,
        """
        id:string              | system:string | name:string | ts:timestamp | seq:int
        told again             | CRM           | Ann         | 2024-01-05   | 1
        newer                  | CRM           | Bea         | 2024-01-09   | 2
        newer and the same     | CRM           | Ann         | 2024-01-09   | 2
        older                  | CRM           | Ann         | 2024-01-05   | 1
        equal time, higher seq | CRM           | Bea         | 2024-01-05   | 2
        equal time, lower seq  | CRM           | Ann         | 2024-01-05   | 9
        to null                | CRM           | -           | 2024-01-09   | 2
        another system         | Admin         | Ann         | 2024-01-05   | 1
        another system         | CRM           | Bea         | 2024-01-09   | 2
        time unknown           | CRM           | Bea         | 2024-01-01   | 2
        new                    | CRM           | Ann         | 2024-01-05   | 2
    """,
    )
    columns = ("id", "system", "name", "ts", "seq")
    assert after(state_changes(batch, held, table), held, table, *columns) == rows_of(expected, *columns)


def test_a_row_that_changes_nothing_calls_for_no_act(spark: SparkSession) -> None:
    rows = """
        id:string | system:string | name:string | ts:timestamp | seq:int
        same      | CRM           | Ann         | 2024-01-05   | 1
        older     | CRM           | Ann         | 2024-01-05   | 1
    """
    said = rows.replace("older     | CRM           | Ann         | 2024-01-05", "older     | CRM           | Bea         | 2024-01-01")
    period = frame(spark, f"start:timestamp | end:timestamp | current:boolean\n2024-01-05 | {OPEN}")
    versions, state = curated_table(), curated_table(scd_type=1, tracked=None)
    held = frame(spark, rows)
    assert version_changes(batch_of(frame(spark, said), versions), held_of(held.crossJoin(period), versions), versions).collect() == []
    assert state_changes(batch_of(frame(spark, said), state), held_of(held, state), state).collect() == []


def test_the_order_of_columns_and_a_column_the_target_lacks_change_nothing_of_what_is_compared(spark: SparkSession) -> None:
    table = curated_table(tracked=("name", "city"))
    held = held_of(
        frame(
            spark,
            """
        city:string | current:boolean | end:timestamp       | start:timestamp | seq:int | name:string | system:string | id:string
        Bonn        | true            | 9999-12-31 23:59:59 | 2024-01-01      | 1       | Ann         | CRM           | same
        Ann         | true            | 9999-12-31 23:59:59 | 2024-01-01      | 1       | Bonn        | CRM           | swapped
    """,
        ),
        table,
    )
    batch = batch_of(
        frame(
            spark,
            """
        id:string | system:string | name:string | ts:timestamp | seq:int | city:string
        same      | CRM           | Ann         | 2024-01-05   | 2       | Bonn
        swapped   | CRM           | Ann         | 2024-01-05   | 2       | Bonn
    """,
        ),
        table,
    )
    changes = version_changes(batch, held, table)
    assert rows_of(changes, "id", ACTION) == [("swapped", "insert"), ("swapped", "update")]
    lacking = version_changes(batch, held.drop("city"), table)
    assert rows_of(lacking, "id", ACTION) == [("same", "insert"), ("same", "update"), ("swapped", "insert"), ("swapped", "update")]


def test_a_tie_in_time_is_decided_by_the_order_as_it_is_declared(spark: SparkSession) -> None:
    table = curated_table(order=(OrderBy("ts", descending=True), OrderBy("seq", descending=False, nulls_first=True)))
    held = held_of(
        frame(
            spark,
            f"""
        id:string        | system:string | name:string | seq:int | start:timestamp | end:timestamp       | current:boolean
        smaller wins     | CRM           | Ann         | 5       | 2024-01-05      | {OPEN}
        larger loses     | CRM           | Ann         | 5       | 2024-01-05      | {OPEN}
        none comes first | CRM           | Ann         | 5       | 2024-01-05      | {OPEN}
        after none       | CRM           | Ann         | -       | 2024-01-05      | {OPEN}
    """,
        ),
        table,
    )
    batch = batch_of(
        frame(
            spark,
            """
        id:string        | system:string | name:string | ts:timestamp | seq:int
        smaller wins     | CRM           | Bea         | 2024-01-05   | 4
        larger loses     | CRM           | Bea         | 2024-01-05   | 6
        none comes first | CRM           | Bea         | 2024-01-05   | -
        after none       | CRM           | Bea         | 2024-01-05   | 4
    """,
        ),
        table,
    )
    versions = after(version_changes(batch, held, table), held, table, "id", "name", "current")
    current = {case: name for case, name, is_current in versions if is_current}
    assert current == {"after none": "Ann", "larger loses": "Ann", "none comes first": "Bea", "smaller wins": "Bea"}


def test_a_version_starts_at_the_column_that_is_named_for_it(spark: SparkSession) -> None:
    table = curated_table(effective_from="happened")
    held = held_of(
        frame(
            spark,
            f"""
        id:string       | system:string | name:string | happened:timestamp | seq:int | start:timestamp | end:timestamp | current:boolean
        happened later  | CRM           | Ann         | 2023-01-05         | 1       | 2023-01-05      | {OPEN}
        happened before | CRM           | Ann         | 2023-01-05         | 1       | 2023-01-05      | {OPEN}
        said later      | CRM           | Ann         | 2023-01-05         | 1       | 2023-01-05      | {OPEN}
    """,
        ),
        table,
    )
    batch = batch_of(
        frame(
            spark,
            """
        id:string       | system:string | name:string | happened:timestamp | ts:timestamp | seq:int
        happened later  | CRM           | Bea         | 2023-01-07         | 2024-01-01   | 2
        happened before | CRM           | Bea         | 2023-01-01         | 2024-01-09   | 2
        said later      | CRM           | Bea         | 2023-01-05         | 2024-01-09   | 2
    """,
        ),
        table,
    )
    expected = frame(
        spark,
        f"""
        id:string       | system:string | name:string | start:timestamp | end:timestamp | current:boolean
        happened later  | CRM           | Ann         | 2023-01-05      | 2023-01-07    | false
        happened later  | CRM           | Bea         | 2023-01-07      | {OPEN}
        happened before | CRM           | Ann         | 2023-01-05      | {OPEN}
        said later      | CRM           | Ann         | 2023-01-05      | 2023-01-05    | false
        said later      | CRM           | Bea         | 2023-01-05      | {OPEN}
    """,
    )
    assert after(version_changes(batch, held, table), held, table, *VERSIONS) == rows_of(expected, *VERSIONS)


def test_a_refused_row_passes_through_with_its_reason_and_touches_nothing(spark: SparkSession) -> None:
    rows = """
        id:string | system:string | name:string | ts:timestamp | seq:int | reason:string
        held      | CRM           | Bea         | 2024-01-09   | 2       | no time
        new       | CRM           | Bea         | 2024-01-09   | 2       | no time
    """
    period = frame(spark, f"start:timestamp | end:timestamp | current:boolean\n2024-01-01 | {OPEN}")
    held = frame(spark, "id:string | system:string | name:string | ts:timestamp | seq:int\nheld | CRM | Ann | 2024-01-01 | 1")
    versions, state = curated_table(), curated_table(scd_type=1, tracked=None)
    of_versions = version_changes(batch_of(frame(spark, rows), versions), held_of(held.crossJoin(period), versions), versions)
    of_state = state_changes(batch_of(frame(spark, rows), state), held_of(held, state), state)
    both = of_versions.select("id", ACTION, REASON).unionByName(of_state.select("id", ACTION, REASON))
    assert rows_of(both) == [("held", "refuse", "no time")] * 2 + [("new", "refuse", "no time")] * 2


def test_blanks_around_a_key_do_not_make_another_entity_but_its_case_does(spark: SparkSession) -> None:
    table = curated_table(scd_type=1, tracked=None)
    rows = [("C1", "CRM"), (" C1 ", "CRM"), ("c1", "CRM"), ("C1", "crm"), ("C1|CRM", ""), ("C1", "|CRM")]
    spoken = spark.createDataFrame(
        [(*row, "Ann", number) for number, row in enumerate(rows)], "id string, system string, name string, seq int"
    )
    hashes = [row[PK_HASH] for row in batch_of(spoken.selectExpr("*", "timestamp'2024-01-01' AS ts"), table).orderBy("seq").collect()]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 5
