"""An answer of delta-rs is computed to its end while other threads go on, and one that fails says so."""

import threading
import time

import pytest
from deltalake import QueryBuilder

from karat.execute.awaited import awaited

LONG = "SELECT count(*) FROM generate_series(1, 60000000) AS t(n) WHERE n % 7 = 3"


def test_all_of_it_is_computed_and_counted() -> None:
    assert awaited(QueryBuilder().execute("SELECT * FROM generate_series(1, 20000)")) == 20_000
    assert awaited(QueryBuilder().execute("SELECT 1 AS n WHERE false")) == 0


def test_an_answer_that_breaks_off_is_an_error() -> None:
    with pytest.raises(OSError, match="broke off"):
        awaited(QueryBuilder().execute("SELECT 1 / (n - n) FROM generate_series(1, 9) AS t(n)"))


def test_other_threads_go_on_meanwhile() -> None:
    ended, steps = threading.Event(), 0
    answer = QueryBuilder().execute(LONG)
    waiting = threading.Thread(target=lambda: (awaited(answer), ended.set()))
    waiting.start()
    while not ended.is_set():
        time.sleep(0.001)
        steps += 1
    waiting.join()
    assert steps > 10  # with Python's lock held there would be one, perhaps two
