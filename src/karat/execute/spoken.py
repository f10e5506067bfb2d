"""What a batch said and about whom, handed on within a run: what has just passed through need not be searched for in the evidence."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame

from karat.temporal.sketch import Bitmaps


@dataclass(frozen=True)
class Spoken:
    """A batch of few keys, none of whose sources spoke of everything."""

    after: int
    """The number of the batch before it."""
    batch: int
    """Its own."""
    keys: DataFrame
    """Whom it is about, by `sk`."""
    near: Bitmaps
    """A sketch of them."""
    named: tuple[bytes, ...] | None
    """They themselves, where they were named."""
    count: int
    """How many of its statements count."""
    since: datetime
    """The first time it speaks of."""
    heard_from: Callable[[], datetime | None]
    """Nothing said of a time before this can be heard any more from then on about these keys; None: everything may be.

    Found out when somebody asks."""
    looks_back: bool
    """Whether it may speak of a time before the last that anybody had spoken of."""
    reached: datetime | None = None
    """The latest time anybody has spoken of, where a search by Spark is to be bounded roughly."""
