"""Where events go: a sink takes them, a fanout hands each one to every sink and lets none of them stop a run."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock
from typing import Final, Protocol

from karat.telemetry.events import Event

_PATIENCE: Final = 3
"""After so many failures in a row a sink is left alone: a dead database would cost a timeout per event."""


class Sink(Protocol):
    """Anything that takes events; it may fail, for the fanout forgives."""

    def emit(self, event: Event) -> None:
        """Take one event."""

    def close(self) -> None:
        """Let go of everything; no event follows."""


class Fanout:
    """Every event to every sink, in one order, from any thread. Never raises."""

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = list(sinks)
        self._failures: dict[int, int] = {}
        self._noted: set[int] = set()
        self._lock = Lock()

    def emit(self, event: Event) -> None:
        """Hand the event on; a sink that keeps failing gets no more of them."""
        with self._lock:
            for number, sink in enumerate(self._sinks):
                if self._failures.get(number, 0) < _PATIENCE:
                    self._hand(number, sink, event)

    def close(self) -> None:
        """Close every sink, whatever the others do."""
        with self._lock:
            for number, sink in enumerate(self._sinks):
                try:
                    sink.close()
                except Exception as failed:  # noqa: BLE001 - telemetry can never fail a run
                    self._note(number, sink, failed)

    def _hand(self, number: int, sink: Sink, event: Event) -> None:
        try:
            sink.emit(event)
        except Exception as failed:  # noqa: BLE001 - telemetry can never fail a run
            self._failures[number] = self._failures.get(number, 0) + 1
            self._note(number, sink, failed)
        else:
            self._failures[number] = 0

    def _note(self, number: int, sink: Sink, failed: Exception) -> None:
        """One plain line per sink and run, however often it fails."""
        if number in self._noted:
            return
        self._noted.add(number)
        with suppress(Exception):
            reason = " ".join(str(failed).split()) or type(failed).__name__
            sys.stderr.write(f"karat: {type(sink).__name__} failed, the run goes on: {reason}\n")
