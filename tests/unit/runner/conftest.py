"""Signals as a process in the foreground has them, wherever the tests were started."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def foreground() -> Iterator[None]:
    """A shell's background job ignores SIGINT, and so would everything that is tested in it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
