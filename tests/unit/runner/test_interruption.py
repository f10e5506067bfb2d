"""Signals are counted, shared and handed back; what each of them ends."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from karat.runner.interruption import Interruption, RunInterrupted, interruptible


def test_the_first_signal_ends_a_run_and_the_second_does_not_wait() -> None:
    with interruptible() as interruption:
        assert not interruption.now
        os.kill(os.getpid(), signal.SIGTERM)
        assert (interruption.asked, interruption.now, interruption.name) == (True, True, "SIGTERM")
        with pytest.raises(RunInterrupted) as stopped:
            os.kill(os.getpid(), signal.SIGINT)
    assert (stopped.value.name, stopped.value.exit_code) == ("SIGINT", 130)
    assert RunInterrupted("SIGTERM").exit_code == 143


def test_a_stream_is_asked_first_and_shares_its_signals_with_its_runs() -> None:
    with interruptible(patience=1) as stream, interruptible() as run:
        assert run is stream
        os.kill(os.getpid(), signal.SIGINT)
        assert (stream.asked, run.now) == (True, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert run.now


def test_whoever_had_the_signals_before_has_them_again() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with interruptible():
        assert isinstance(signal.getsignal(signal.SIGTERM), Interruption)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_outside_the_main_thread_nothing_is_taken() -> None:
    before, found = signal.getsignal(signal.SIGTERM), []

    def run() -> None:
        with interruptible() as interruption:
            found.append((interruption.asked, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [(False, before)]


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    program = (
        "import os, signal\nfrom karat.runner.interruption import interruptible\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "with interruptible() as interruption:\n    os.kill(os.getpid(), signal.SIGINT)\n    assert not interruption.asked\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0  # noqa: S603  (the words above)
