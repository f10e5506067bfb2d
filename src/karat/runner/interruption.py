"""Signals that end a run before its time. A handler only takes note; whoever waits looks at the note and acts on it.

The first signal ends a run: nothing new is started and running jobs are cancelled. A stream is given one more, which only asks it
to stop after the batch at hand. One more than that is answered at once, without waiting for anything.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
LOOK_SECONDS: Final = 0.2
"""How often whoever waits looks for a signal."""


class RunInterrupted(KeyboardInterrupt):
    """A signal ended the run; what was committed stays."""

    def __init__(self, name: str) -> None:
        super().__init__(f"interrupted by {name}")
        self.name = name

    @property
    def exit_code(self) -> int:
        """The exit code of a command that a signal ended, as a shell would give it."""
        return 128 + int(signal.Signals[self.name])


class Interruption:
    """The signals so far; itself the handler of them. It takes no lock, for a handler may come between any two instructions."""

    def __init__(self, patience: int = 0) -> None:
        self._patience = patience
        self._signals = 0
        self.name: str | None = None
        """The last signal, such as SIGTERM."""

    def __call__(self, number: int, _frame: FrameType | None = None) -> None:
        """Take note; raise when even the end of the running stages is not to be waited for."""
        self._signals += 1
        self.name = signal.Signals(number).name
        if self._signals > self._patience + 1:
            raise RunInterrupted(self.name)

    @property
    def asked(self) -> bool:
        """Whether anybody wants an end, be it after the batch at hand."""
        return self._signals > 0

    @property
    def now(self) -> bool:
        """Whether the run itself is to end."""
        return self._signals > self._patience


@contextmanager
def interruptible(patience: int = 0) -> Iterator[Interruption]:
    """The signals that come from here on; the note of whoever listens already is shared. Only the main thread can be signalled."""
    around = signal.getsignal(signal.SIGINT)
    if isinstance(around, Interruption):
        yield around
        return
    mine = Interruption(patience)
    before = {}
    if threading.current_thread() is threading.main_thread():
        # a signal that the process was told to ignore, as in the background of a script, stays ignored
        taken = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, mine) for number in taken}
    try:
        yield mine
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
