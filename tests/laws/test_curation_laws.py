"""Laws that hold in every world, and what the oracle of curation says of this one: random histories, batch by batch."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise, permutations

import pytest
from pyspark.sql import SparkSession

from tests.support.curation_oracle import OPEN_END, Row, State, Target, by_entity, entity_of, history, state_of
from tests.support.played import KEY, RULES, SEED, STATE, TRACKED, WITH_HISTORY, Played, play

PLACED = ("place", "place_by_event", "shuffled")


@pytest.fixture(scope="module")
def played(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One play for all laws."""
    return play(spark, tmp_path_factory.mktemp("laws"))


@pytest.mark.parametrize("target", RULES)
def test_a_target_holds_what_the_requirements_say_after_every_batch(played: Played, target: str) -> None:
    for number, (expected, held) in enumerate(zip(played.expected(target), played.held, strict=True)):
        _assert_same(_shown(held[target], target), _expected(expected, target), f"{target}, batch {number}")


def test_place_equals_the_history_of_all_rows_by_time_whatever_their_arrival(played: Played) -> None:
    rules = RULES["place_by_event"]
    stories = {entity: history(said, rules) for entity, said in by_entity(played.everything, rules).items()}
    for target in ("place_by_event", "shuffled"):
        _assert_same(_shown(played.held[-1][target], target), _expected(Target(held=stories), target), target)


def test_ties_that_no_order_breaks_are_broken_the_same_way_whatever_the_arrival(played: Played) -> None:
    one, other = (
        [_tuple(row, name) for row in played.held[-1][name] if row["id"].startswith("tied")] for name in ("place_by_event", "shuffled")
    )
    assert len(one) > 20, "the play has no ties"
    _assert_same(one, other, "ties")


def test_running_again_makes_no_commit_and_says_so(played: Played) -> None:
    before, after = played.versions
    assert after == before, f"KARAT_SEED={SEED}"
    assert set(played.ends.values()) == {"unchanged"}, f"{played.ends}; KARAT_SEED={SEED}"


@pytest.mark.parametrize("target", WITH_HISTORY)
def test_periods_of_an_entity_follow_each_other_without_gap_or_overlap(played: Played, target: str) -> None:
    for held in played.held:
        for entity, versions in _stories(held[target]).items():
            assert all(before["end"] == after["start"] for before, after in pairwise(versions)), f"{entity} {versions}; KARAT_SEED={SEED}"
            assert all(version["start"] <= version["end"] for version in versions), f"{entity} {versions}; KARAT_SEED={SEED}"


@pytest.mark.parametrize("target", WITH_HISTORY)
def test_an_entity_has_one_current_version_and_it_is_the_last_and_open(played: Played, target: str) -> None:
    for held in played.held:
        for entity, versions in _stories(held[target]).items():
            currency = [(version["is_current"], version["end"] == OPEN_END) for version in versions]
            assert currency == [(False, False)] * (len(versions) - 1) + [(True, True)], f"{entity} {versions}; KARAT_SEED={SEED}"


@pytest.mark.parametrize("target", WITH_HISTORY)
def test_neighbouring_versions_of_an_entity_differ_in_their_state(played: Played, target: str) -> None:
    for held in played.held:
        for entity, versions in _stories(held[target]).items():
            assert _can_be_told(versions), f"{entity} {versions}; KARAT_SEED={SEED}"


@pytest.mark.parametrize("target", PLACED)
def test_a_placed_entity_is_in_no_state_twice_at_one_moment(played: Played, target: str) -> None:
    for held in played.held:
        for entity, versions in _stories(held[target]).items():
            states = [(version["start"], _meaning(version)) for version in versions]
            assert len(set(states)) == len(states), f"{entity} {versions}; KARAT_SEED={SEED}"


def test_a_refused_row_is_kept_once_however_often_it_is_read(played: Played) -> None:
    expected = {row["seq"] for row in played.expected("place_by_event")[-1].refused}
    seen = [json.loads(row["original"])["seq"] for row in played.refused]
    assert len(expected) > 50, "the play refuses nothing"
    assert sorted(seen) == sorted(expected), f"KARAT_SEED={SEED}"


def _shown(rows: Iterable[Row], target: str) -> list[tuple[object, ...]]:
    """Held rows as comparable tuples, without the cases whose ties have no one answer."""
    return [_tuple(row, target) for row in rows if not row["id"].startswith("tied")]


def _expected(state: Target, target: str) -> list[tuple[object, ...]]:
    period = ("effective_start_date", "effective_end_date", "is_current")
    rows = [
        {**version.row, **dict(zip(period, (version.start, version.end, version.current), strict=True))} for _, version in state.versions
    ]
    return _shown(rows, target)


def _tuple(row: Row, target: str) -> tuple[object, ...]:
    """The whole row; of a placed version only whom, what and when: which of two rows that say the same is kept, is open."""
    if target == "state":
        return tuple(row[name] for name in (*KEY, *TRACKED, "rank", "event_ts", "ingestion_ts", "seq"))
    period = tuple(row[name] for name in ("effective_start_date", "effective_end_date", "is_current"))
    if target in PLACED:
        return (*entity_of(row, STATE), *period, *_meaning(row))
    return (*(row[name] for name in KEY), *period, *(row[name] for name in (*TRACKED, "rank", "event_ts", "ingestion_ts", "seq")))


def _meaning(row: Row) -> tuple[object, ...]:
    return state_of(row, replace(STATE, tracked=TRACKED))


def _stories(rows: Iterable[Row]) -> dict[tuple[object, ...], list[Row]]:
    """Versions entity by entity; an empty period comes before the one that starts at its end."""
    stories: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        stories.setdefault(entity_of(row, STATE), []).append(
            {**row, "start": row["effective_start_date"], "end": row["effective_end_date"]}
        )
    return {entity: sorted(versions, key=lambda version: (version["start"], version["end"])) for entity, versions in stories.items()}


def _can_be_told(versions: Sequence[Row]) -> bool:
    """Whether every version says something new in some order the periods allow: of empty ones at one moment none says which came first."""
    before: list[State] = []
    for _, group in groupby(versions, lambda version: version["start"]):
        *empty, lasting = map(_meaning, group)
        if not any(_all_differ([*before, *order, lasting]) for order in permutations(empty)):
            return False
        before = [lasting]
    return True


def _all_differ(states: Sequence[State]) -> bool:
    return all(before != after for before, after in pairwise(states))


def _assert_same(seen: Sequence[tuple[object, ...]], expected: Sequence[tuple[object, ...]], where: str) -> None:
    """The same rows as often; a difference names the seed and shows a few cases."""
    surplus = sorted(map(str, set(seen) - set(expected)))
    missing = sorted(map(str, set(expected) - set(seen)))
    story = "\n".join([f"{where}; KARAT_SEED={SEED}", "held but not expected:", *surplus[:6], "expected but not held:", *missing[:6]])
    assert not surplus, story
    assert not missing, story
    assert len(seen) == len(expected), f"{where}: a row is held twice; KARAT_SEED={SEED}"
