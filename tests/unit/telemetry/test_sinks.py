"""A fanout hands every event to every sink, and no sink can stop a run."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from karat.telemetry.events import Event, StageStarted
from karat.telemetry.ledger import Ledger
from karat.telemetry.sinks import Fanout

AT = datetime(2026, 1, 2, tzinfo=UTC)
EVENT = StageStarted("r1", AT, "bronze.a")


class Kept:
    """A sink, and a recorder, that keeps what it is given."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed = False

    def emit(self, event: Event) -> None:
        self.events.append(event)

    record = emit

    def close(self) -> None:
        self.closed = True


class Broken:
    """A sink that fails, except on the calls it is told to survive."""

    def __init__(self, *survived: int) -> None:
        self.calls = 0
        self.survived = survived

    def emit(self, event: Event) -> None:
        self.calls += 1
        if self.calls not in self.survived:
            message = f"no disk\nfor {type(event).__name__}"
            raise OSError(message)

    def close(self) -> None:
        message = "still no disk"
        raise OSError(message)


def test_every_sink_gets_every_event_and_is_closed() -> None:
    sinks = [Kept(), Kept()]
    fanout = Fanout(sinks)
    fanout.emit(EVENT)
    fanout.close()
    assert [(sink.events, sink.closed) for sink in sinks] == [([EVENT], True)] * 2


def test_a_sink_that_fails_is_noted_once_and_left_alone_after_three(capsys: pytest.CaptureFixture[str]) -> None:
    broken, kept = Broken(), Kept()
    fanout = Fanout([broken, kept])
    for _ in range(5):
        fanout.emit(EVENT)
    fanout.close()
    assert (broken.calls, len(kept.events), kept.closed) == (3, 5, True)
    assert capsys.readouterr() == ("", "karat: Broken failed, the run goes on: no disk for StageStarted\n")


def test_a_sink_that_recovers_is_kept() -> None:
    broken = Broken(3, 6)
    fanout = Fanout([broken])
    for _ in range(8):
        fanout.emit(EVENT)
    assert broken.calls == 8


def test_events_from_many_threads_reach_all_sinks_in_one_order() -> None:
    first, second = Kept(), Kept()
    fanout = Fanout([first, second])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: fanout.emit(StageStarted("r1", AT, f"t{number}")), range(200)))
    assert len(first.events) == 200
    assert first.events == second.events


def test_the_ledger_hands_events_to_the_store() -> None:
    store = Kept()
    ledger = Ledger(store)
    ledger.emit(EVENT)
    ledger.close()
    assert (store.events, store.closed) == ([EVENT], True)
