"""Random histories of two entities and two sources: what holds whatever was said, in whatever order and split it arrived."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.reference import EntitySchema, Row, reconstruct, timeline
from tests.unit.reference.histories import moment, row, terms

Said = Mapping[str, str]
Runs = Sequence[Sequence[Said]]

ATTRIBUTES, UNTRACKED = ("name", "status", "note"), frozenset({"note"})
PINNED = terms(*ATTRIBUTES, untracked=UNTRACKED)
PROPAGATED = terms(*ATTRIBUTES, untracked=UNTRACKED, late_partials="propagate")
FACTS = terms(*ATTRIBUTES, untracked=UNTRACKED, late_partials="propagate", entity_type="transaction")
RANK = {"CRM": "1", "CORE": "2"}
BY_ARRIVAL = {"ingest_ts", "ingest_run_id", "first_seen_ts", "last_seen_ts", "source_file", "source_path", "record_hash", "corrects"}
MANY = settings(max_examples=300, deadline=None, database=None)
SOME = settings(MANY, max_examples=100)

days = st.integers(1, 7).map(str)
values = st.sampled_from([".", ".", "-", "A", "B"])
complete = st.sampled_from(["-", "A", "B"])
where = {"key": st.sampled_from(["C1", "C2"]), "source": st.sampled_from(sorted(RANK)), "at": days, "copies": st.sampled_from("12")}
sequences = st.sampled_from(["-", "-", "9", "10"])

changes = st.fixed_dictionaries({**where, "op": st.sampled_from("cud"), "seq": sequences, **dict.fromkeys(ATTRIBUTES, values)})
extracts = st.fixed_dictionaries(
    {**where, "load": st.just("FULL"), "op": st.just("-"), "snapshot": days, **dict.fromkeys(ATTRIBUTES, complete)}
)
sweeps = st.fixed_dictionaries({**where, "load": st.just("FULL"), "op": st.sampled_from(["t", "absent"]), "seq": sequences})


@st.composite
def histories(draw: st.DrawFn) -> list[Said]:
    """Statements, some of them arriving twice; each arrival in a file of its own, so that no tie is left to the run."""
    said = draw(st.lists(st.one_of(changes, changes, extracts, sweeps), min_size=1, max_size=9))
    again = draw(st.lists(st.sampled_from(said), max_size=3))
    return [{**cells, "rank": RANK[cells["source"]], "file": f"f{number:02}"} for number, cells in enumerate([*said, *again])]


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[list[Said], Runs]:
    """A history, and the same history shuffled and cut into runs."""
    said = draw(histories())
    cuts = sorted(draw(st.sets(st.integers(1, len(said)), max_size=4)) | {0, len(said)})
    shuffled = draw(st.permutations(said))
    return said, [shuffled[start:end] for start, end in pairwise(cuts)]


@pytest.mark.parametrize("agreed", [PROPAGATED, FACTS], ids=["state", "transaction"])
@MANY
@given(arrived=arrivals())
def test_propagating_makes_order_and_split_of_arrival_irrelevant(agreed: EntitySchema, arrived: tuple[list[Said], Runs]) -> None:
    at_once, bit_by_bit = (played(runs, agreed) for runs in ([arrived[0]], arrived[1]))
    assert without_arrival(timeline(at_once, agreed)) == without_arrival(timeline(bit_by_bit, agreed))


@pytest.mark.parametrize("agreed", [PINNED, PROPAGATED], ids=["pinned", "propagate"])
@SOME
@given(arrived=arrivals())
def test_periods_never_overlap_and_chains_have_no_gaps(agreed: EntitySchema, arrived: tuple[list[Said], Runs]) -> None:
    for rows in by(timeline(played(arrived[1], agreed), agreed), "bk"):
        assert_chain(rows, "effective_to", "is_current")
        for of_source in by(rows, "source_system"):
            assert_chain(of_source, "source_effective_to", "is_source_current")


@SOME
@given(arrived=arrivals())
def test_neighbours_differ_and_every_statement_is_in_some_version(arrived: tuple[list[Said], Runs]) -> None:
    record = played(arrived[1], PINNED)
    rows = timeline(record, PINNED)
    assert {row["bk"] for row in rows} == {row["bk"] for row in record} - {None}
    for of_key in by(rows, "bk"):
        assert all(state(one) != state(other) for one, other in pairwise(of_key))
    assert sum(row["seen_count"] for row in rows) >= sum(row["copies"] for row in record if row["bk"])


@SOME
@given(arrived=arrivals())
def test_nothing_a_source_said_before_its_truncate_outlives_it(arrived: tuple[list[Said], Runs]) -> None:
    said, runs = arrived
    rows = timeline(played(runs, PINNED), PINNED)
    for source, at in {(cells["source"], moment(cells["at"])) for cells in said if cells["op"] == "t"}:
        live = [row for row in rows if row["source_system"] == source and not row["is_deleted"]]
        assert not [row for row in live if row["effective_from"] < at and ends_after(row["source_effective_to"], at)]


@SOME
@given(said=histories())
def test_what_arrives_in_one_run_is_the_same_pinned_and_propagated(said: list[Said]) -> None:
    assert timeline(played([said], PINNED), PINNED) == timeline(played([said], PROPAGATED), PROPAGATED)


@SOME
@given(arrived=arrivals())
def test_everything_once_more_is_seen_again_and_changes_nothing(arrived: tuple[list[Said], Runs]) -> None:
    once, twice = (timeline(played(runs, PINNED), PINNED) for runs in (arrived[1], [*arrived[1], arrived[0]]))
    seen = {"last_seen_ts", "seen_count"}
    assert [{k: v for k, v in row.items() if k not in seen} for row in once] == [
        {k: v for k, v in row.items() if k not in seen} for row in twice
    ]
    assert [2 * row["seen_count"] for row in once] == [row["seen_count"] for row in twice]


def played(runs: Runs, agreed: EntitySchema) -> list[Row]:
    record: list[Row] = []
    for number, arriving in enumerate(runs, 1):
        record += reconstruct(record, [row(cells, number, agreed) for cells in arriving], agreed)
    return record


def without_arrival(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows without what only tells when and with which file a statement came."""
    kept = [{name: value for name, value in row.items() if name not in BY_ARRIVAL} for row in rows]
    origin = itemgetter("source_system", "source_event_ts")
    return [{**row, "inherited": {name: origin(word) for name, word in row["inherited"].items()}} for row in kept]


def assert_chain(rows: Sequence[Row], end: str, current: str) -> None:
    """Each period ends where the next begins, and the last one, alone, is open."""
    assert [row[end] for row in rows] == [*(row["effective_from"] for row in rows[1:]), None]
    assert [row[current] for row in rows] == [False] * (len(rows) - 1) + [True]
    assert all(row["effective_from"] <= row[end] for row in rows[:-1])


def by(rows: Iterable[Row], name: str) -> list[list[Row]]:
    """The rows in their order, apart by a column."""
    return [list(group) for _, group in groupby(sorted(rows, key=itemgetter(name)), key=itemgetter(name))]


def state(row: Row) -> tuple[str, bytes]:
    return row["source_system"], row["attr_hash"]


def ends_after(end: datetime | None, at: datetime) -> bool:
    return end is None or end > at
