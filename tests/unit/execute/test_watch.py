"""How far sources have got tells whether a batch may have been delivered before, and whether it speaks of the past."""

import pytest

from karat.execute.suspicion import Watch
from karat.temporal.moments import from_micros
from tests.frames.contract.feeds import INGESTED, entity_with

BEFORE = {"CRM": {"time": 5}, "SHUT_DOWN": {"sequence": "9"}}


@pytest.mark.parametrize(
    ("reached", "latest", "further"),
    [(BEFORE, 5, False), (BEFORE, 6, True), (BEFORE, None, False), ({}, 5, True), ({"CRM": {"sequence": "1"}}, 5, True)],
)
def test_a_source_gets_further_when_it_speaks_of_a_later_time_or_for_the_first_time(
    reached: dict[str, dict[str, object]], latest: int | None, *, further: bool
) -> None:
    entity, _ = entity_with({"load_type": "PARTIAL"})
    assert Watch(entity, reached, INGESTED).gets_further({"time_0": latest}) is further


@pytest.mark.parametrize(("at", "reached"), [(4, True), (5, False), (6, False)])
def test_a_time_was_reached_when_somebody_has_spoken_of_a_later_one(at: int, *, reached: bool) -> None:
    entity, _ = entity_with({"load_type": "PARTIAL"})
    assert Watch(entity, BEFORE, INGESTED).has_reached(from_micros(at)) is reached
