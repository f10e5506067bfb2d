"""The run ledger as a sink: events go to the state store."""

from typing import Protocol

from karat.telemetry.events import Event


class Recorder(Protocol):
    """What the ledger needs of `karat.state.writer.StateWriter`; state knows telemetry's events, never the other way round."""

    def record(self, event: Event) -> None:
        """Keep one event."""

    def close(self) -> None:
        """Let go of the store."""


class Ledger:
    """Hands each event to the store's writer."""

    def __init__(self, writer: Recorder) -> None:
        self._writer = writer

    def emit(self, event: Event) -> None:
        """Keep the event in the store."""
        self._writer.record(event)

    def close(self) -> None:
        """Close the store."""
        self._writer.close()
