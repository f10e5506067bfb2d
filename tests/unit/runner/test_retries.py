"""A stage that met another writer starts again from the beginning; in the end it says who was in its way."""

import os
import signal
import time

import pytest

from karat.errors import SourceUnavailable, StateConflict
from karat.runner import run as runner
from karat.runner.interruption import Interruption, interruptible


class Stage:
    """Meets another writer so many times."""

    def __init__(self, conflicts: int) -> None:
        self.left = conflicts
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.left:
            self.left -= 1
            message = "another run changed bronze.customer at the same time"
            raise StateConflict(message)
        return "done"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses a stage takes, which take no time here."""
    taken: list[float] = []

    def paused(seconds: float, _interruption: Interruption) -> bool:
        taken.append(seconds)
        return True

    monkeypatch.setattr(runner, "_paused", paused)
    return taken


def test_a_conflict_is_answered_by_computing_again_after_growing_pauses(pauses: list[float]) -> None:
    stage = Stage(conflicts=3)
    assert runner.with_retries(stage, "bronze.customer", Interruption()) == "done"
    assert (stage.calls, pauses) == (4, [1.0, 2.0, 4.0])


def test_a_table_that_others_keep_writing_fails_and_says_so(pauses: list[float]) -> None:
    stage = Stage(conflicts=99)
    with pytest.raises(StateConflict, match=r"bronze\.customer was tried 6 times, and another run came first") as lost:
        runner.with_retries(stage, "bronze.customer", Interruption())
    assert "another run works on the same table" in lost.value.remedy
    assert (stage.calls, len(pauses)) == (runner.ATTEMPTS, runner.ATTEMPTS - 1)


def test_another_failure_is_not_tried_again(pauses: list[float]) -> None:
    def broken() -> None:
        message = "no disk"
        raise SourceUnavailable(message)

    with pytest.raises(SourceUnavailable):
        runner.with_retries(broken, "bronze.customer", Interruption())
    assert pauses == []


def test_a_signal_ends_the_waiting() -> None:
    stage, begun = Stage(conflicts=99), time.monotonic()
    with interruptible() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(StateConflict):
            runner.with_retries(stage, "bronze.customer", interruption)
    assert stage.calls == 1
    assert time.monotonic() - begun < 5
