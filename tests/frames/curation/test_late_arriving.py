"""Every distinct state in its place: what the target holds once the acts are done. One case per key, one job per test."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from karat.curation.late_arriving import changes_with_late_rows
from karat.temporal.columns import ACTION, REASON
from tests.support.curated import after, batch_of, curated_table, held_of
from tests.support.curation_oracle import By, Rules, by_entity, history, state_of
from tests.support.frames import frame, rows_of

SEED = 20240613
TABLE = curated_table(place_late=True)
VERSIONS = ("id", "system", "name", "start", "end", "current")
OPEN = "9999-12-31 23:59:59 | true "
SAID = "id string, system string, name string, ts timestamp, seq int"


def test_a_late_row_takes_its_place_in_history(spark: SparkSession) -> None:
    held = held_of(
        frame(
            spark,
            f"""
        id:string                   | system:string | name:string | seq:int | start:timestamp | end:timestamp       | current:boolean
        at the end                  | CRM           | A           | 1       | 2024-01-01      | {OPEN}
        in the middle               | CRM           | A           | 1       | 2024-01-01      | 2024-01-03          | false
        in the middle               | CRM           | C           | 3       | 2024-01-03      | {OPEN}
        in front                    | CRM           | B           | 1       | 2024-01-05      | {OPEN}
        in front and the same       | CRM           | A           | 1       | 2024-01-05      | {OPEN}
        there and back              | CRM           | A           | 1       | 2024-01-01      | {OPEN}
        a repeat found again        | CRM           | A           | 1       | 2024-01-01      | {OPEN}
        repeats its predecessor     | CRM           | A           | 1       | 2024-01-01      | 2024-01-03          | false
        repeats its predecessor     | CRM           | C           | 3       | 2024-01-03      | {OPEN}
        repeats its follower        | CRM           | A           | 1       | 2024-01-01      | 2024-01-03          | false
        repeats its follower        | CRM           | C           | 3       | 2024-01-03      | {OPEN}
        repeats the current         | CRM           | A           | 1       | 2024-01-01      | {OPEN}
        null is a state             | CRM           | A           | 1       | 2024-01-01      | {OPEN}
        told again                  | CRM           | A           | 1       | 2024-01-01      | 2024-01-03          | false
        told again                  | CRM           | C           | 3       | 2024-01-03      | {OPEN}
        another system              | Admin         | A           | 1       | 2024-01-01      | {OPEN}
        equal time, higher seq      | CRM           | A           | 1       | 2024-01-01      | {OPEN}
        equal time, lower seq       | CRM           | A           | 9       | 2024-01-01      | {OPEN}
        no longer in the source     | CRM           | A           | 1       | 2024-01-01      | 2024-01-03          | false
        no longer in the source     | CRM           | C           | 3       | 2024-01-03      | {OPEN}
    """,
        ),
        TABLE,
    )
    said = batch_of(
        frame(
            spark,
            """
        id:string                   | system:string | name:string | ts:timestamp               | seq:int
        at the end                  | CRM           | A           | 2024-01-01                 | 1
        at the end                  | CRM           | C           | 2024-01-03                 | 2
        in the middle               | CRM           | A           | 2024-01-01                 | 1
        in the middle               | CRM           | C           | 2024-01-03                 | 3
        in the middle               | CRM           | B           | 2024-01-02                 | 2
        in front                    | CRM           | A           | 2024-01-01                 | 2
        in front                    | CRM           | B           | 2024-01-05                 | 1
        in front and the same       | CRM           | A           | 2024-01-01                 | 2
        there and back              | CRM           | B           | 2024-01-02                 | 2
        there and back              | CRM           | A           | 2024-01-03                 | 3
        a repeat found again        | CRM           | A           | 2024-01-01                 | 1
        a repeat found again        | CRM           | A           | 2024-01-03                 | 2
        a repeat found again        | CRM           | B           | 2024-01-02                 | 3
        repeats its predecessor     | CRM           | A           | 2024-01-02                 | 2
        repeats its follower        | CRM           | C           | 2024-01-02                 | 2
        repeats the current         | CRM           | A           | 2024-01-09                 | 2
        null is a state             | CRM           | -           | 2024-01-02                 | 2
        null is a state             | CRM           | A           | 2024-01-03                 | 3
        told again                  | CRM           | A           | 2024-01-01                 | 1
        told again                  | CRM           | C           | 2024-01-03                 | 3
        told again                  | CRM           | C           | 2024-01-03                 | 3
        another system              | CRM           | B           | 2024-01-02                 | 2
        equal time, higher seq      | CRM           | B           | 2024-01-01                 | 2
        equal time, lower seq       | CRM           | B           | 2024-01-01                 | 2
        no longer in the source     | CRM           | B           | 2024-01-02                 | 2
        new, three states at once   | CRM           | C           | 2024-01-03                 | 3
        new, three states at once   | CRM           | A           | 2024-01-01                 | 1
        new, three states at once   | CRM           | B           | 2024-01-02                 | 2
        new, one state three times  | CRM           | A           | 2024-01-03                 | 3
        new, one state three times  | CRM           | A           | 2024-01-01                 | 1
        new, one state three times  | CRM           | A           | 2024-01-02                 | 2
        by a microsecond            | CRM           | A           | 2024-01-01                 | 1
        by a microsecond            | CRM           | B           | 2024-01-01 00:00:00.000001 | 2
    """,
        ),
        TABLE,
    )
    expected = frame(
        spark,
        f"""
        id:string                  | system:string | name:string | start:timestamp            | end:timestamp              | current:boolean
        at the end                 | CRM           | A           | 2024-01-01                 | 2024-01-03                 | false
        at the end                 | CRM           | C           | 2024-01-03                 | {OPEN}
        in the middle              | CRM           | A           | 2024-01-01                 | 2024-01-02                 | false
        in the middle              | CRM           | B           | 2024-01-02                 | 2024-01-03                 | false
        in the middle              | CRM           | C           | 2024-01-03                 | {OPEN}
        in front                   | CRM           | A           | 2024-01-01                 | 2024-01-05                 | false
        in front                   | CRM           | B           | 2024-01-05                 | {OPEN}
        in front and the same      | CRM           | A           | 2024-01-01                 | {OPEN}
        there and back             | CRM           | A           | 2024-01-01                 | 2024-01-02                 | false
        there and back             | CRM           | B           | 2024-01-02                 | 2024-01-03                 | false
        there and back             | CRM           | A           | 2024-01-03                 | {OPEN}
        a repeat found again       | CRM           | A           | 2024-01-01                 | 2024-01-02                 | false
        a repeat found again       | CRM           | B           | 2024-01-02                 | 2024-01-03                 | false
        a repeat found again       | CRM           | A           | 2024-01-03                 | {OPEN}
        repeats its predecessor    | CRM           | A           | 2024-01-01                 | 2024-01-03                 | false
        repeats its predecessor    | CRM           | C           | 2024-01-03                 | {OPEN}
        repeats its follower       | CRM           | A           | 2024-01-01                 | 2024-01-02                 | false
        repeats its follower       | CRM           | C           | 2024-01-02                 | {OPEN}
        repeats the current        | CRM           | A           | 2024-01-01                 | {OPEN}
        null is a state            | CRM           | A           | 2024-01-01                 | 2024-01-02                 | false
        null is a state            | CRM           | -           | 2024-01-02                 | 2024-01-03                 | false
        null is a state            | CRM           | A           | 2024-01-03                 | {OPEN}
        told again                 | CRM           | A           | 2024-01-01                 | 2024-01-03                 | false
        told again                 | CRM           | C           | 2024-01-03                 | {OPEN}
        another system             | Admin         | A           | 2024-01-01                 | {OPEN}
        another system             | CRM           | B           | 2024-01-02                 | {OPEN}
        equal time, higher seq     | CRM           | A           | 2024-01-01                 | 2024-01-01                 | false
        equal time, higher seq     | CRM           | B           | 2024-01-01                 | {OPEN}
        equal time, lower seq      | CRM           | B           | 2024-01-01                 | 2024-01-01                 | false
        equal time, lower seq      | CRM           | A           | 2024-01-01                 | {OPEN}
        no longer in the source    | CRM           | A           | 2024-01-01                 | 2024-01-02                 | false
        no longer in the source    | CRM           | B           | 2024-01-02                 | 2024-01-03                 | false
        no longer in the source    | CRM           | C           | 2024-01-03                 | {OPEN}
        new, three states at once  | CRM           | A           | 2024-01-01                 | 2024-01-02                 | false
        new, three states at once  | CRM           | B           | 2024-01-02                 | 2024-01-03                 | false
        new, three states at once  | CRM           | C           | 2024-01-03                 | {OPEN}
        new, one state three times | CRM           | A           | 2024-01-01                 | {OPEN}
        by a microsecond           | CRM           | A           | 2024-01-01                 | 2024-01-01 00:00:00.000001 | false
        by a microsecond           | CRM           | B           | 2024-01-01 00:00:00.000001 | {OPEN}
    """,
    )
    assert after(changes_with_late_rows(said, held, TABLE), held, TABLE, *VERSIONS) == rows_of(expected, *VERSIONS)


def test_of_words_taken_back_at_one_moment_the_last_in_order_stands(spark: SparkSession) -> None:
    """A, then B, then A again, all at one time: A stands, whichever of them is held already."""
    period = f"2024-01-05 | {OPEN}"
    held = held_of(
        frame(
            spark,
            f"""
        id:string        | system:string | name:string | seq:int | start:timestamp | end:timestamp | current:boolean
        A is held        | CRM           | A           | 1       | {period}
        A and B are held | CRM           | A           | 1       | 2024-01-05      | 2024-01-05    | false
        A and B are held | CRM           | B           | 2       | {period}
        last A is held   | CRM           | A           | 3       | {period}
    """,
        ),
        TABLE,
    )
    cases = ("A is held", "A and B are held", "last A is held", "nothing is held")
    words = [(case, "CRM", name, datetime(2024, 1, 5, tzinfo=UTC), seq) for case in cases for name, seq in (("A", 1), ("B", 2), ("A", 3))]
    said = batch_of(spark.createDataFrame(words, SAID), TABLE)
    current = [row for row in after(changes_with_late_rows(said, held, TABLE), held, TABLE, "id", "name", "current") if row[2]]
    assert current == [(case, "A", True) for case in sorted(cases)]


def test_what_is_in_place_calls_for_no_act(spark: SparkSession) -> None:
    said = [
        ("plain", "CRM", name, datetime(2024, 1, day, tzinfo=UTC), day) for name, day in (("A", 1), ("B", 2), ("B", 3), (None, 4), ("A", 5))
    ]
    words = batch_of(spark.createDataFrame([*said, *said], SAID), TABLE)
    rows = """
        id:string | system:string | name:string | seq:int | start:timestamp | end:timestamp       | current:boolean
        plain     | CRM           | A           | 1       | 2024-01-01      | 2024-01-02          | false
        plain     | CRM           | B           | 2       | 2024-01-02      | 2024-01-04          | false
        plain     | CRM           | -           | 4       | 2024-01-04      | 2024-01-05          | false
        plain     | CRM           | A           | 5       | 2024-01-05      | 9999-12-31 23:59:59 | true
    """
    assert changes_with_late_rows(words, held_of(frame(spark, rows), TABLE), TABLE).collect() == []


def test_a_refused_row_passes_through_and_has_no_place(spark: SparkSession) -> None:
    rows = """
        id:string | system:string | name:string | ts:timestamp | seq:int | reason:string
        one       | CRM           | A           | 2024-01-01   | 1       | -
        one       | CRM           | B           | -            | 2       | no time
        one       | CRM           | C           | 2024-01-03   | 3       | bad
    """
    held = held_of(spark.createDataFrame([], f"{SAID}, start timestamp, end timestamp, current boolean"), TABLE)
    changes = changes_with_late_rows(batch_of(frame(spark, rows), TABLE), held, TABLE)
    assert rows_of(changes, "name", ACTION, REASON, "current") == [
        ("A", "insert", None, True),
        ("B", "refuse", "no time", None),
        ("C", "refuse", "bad", None),
    ]


def test_history_is_the_same_whatever_the_arrival(spark: SparkSession) -> None:
    """Random stories with equal times, in three random batches: after each, what is held is the history of all that was said."""
    dice = random.Random(SEED)  # noqa: S311 - stories, not secrets
    rows = _stories(dice)
    batches = [dice.randrange(3) for _ in rows]
    schema = f"{SAID}, start timestamp, end timestamp, current boolean"
    held_rows: list[tuple[object, ...]] = []
    columns = ("id", "system", "name", "ts", "seq", "start", "end", "current")
    for number in range(3):
        said = [row for row, batch in zip(rows, batches, strict=True) if batch <= number]
        held = held_of(spark.createDataFrame(held_rows, schema), TABLE)
        changes = changes_with_late_rows(batch_of(spark.createDataFrame([tuple(row.values()) for row in said], SAID), TABLE), held, TABLE)
        held_rows = after(changes, held, TABLE, *columns)
        _assert_told(held_rows, said, f"seed {SEED}, batch {number}")


def _stories(dice: random.Random) -> list[dict[str, Any]]:
    """Three hundred stories of up to seven words at four moments; the sequence of each is all its own."""
    return [
        {
            "id": f"case {number:03}",
            "system": "CRM",
            "name": dice.choice(["A", "B", None]),
            "ts": datetime(2024, 1, dice.randint(1, 4), tzinfo=UTC),
            "seq": seq,
        }
        for number in range(300)
        for seq in dice.sample(range(100), dice.randint(1, 7))
    ]


def _assert_told(held: list[tuple[object, ...]], said: list[dict[str, Any]], where: str) -> None:
    rules = Rules("place", ("id", "system"), "ts", timedelta(), (By("ts", descending=True), By("seq", descending=True)), ("name",))
    expected = {
        (*entity, *state_of(version.row, rules), *map(_naive, (version.start, version.end)), version.current)
        for entity, words in by_entity(said, rules).items()
        for version in history(words, rules)
    }
    seen = {(key, system, name, start, end, current) for key, system, name, _, _, start, end, current in held}
    assert sorted(map(str, seen - expected)) == [], where
    assert sorted(map(str, expected - seen)) == [], where


def _naive(moment: datetime) -> datetime:
    """As `collect` hands a moment over: naive, in the machine's time zone."""
    return moment.astimezone().replace(tzinfo=None)
