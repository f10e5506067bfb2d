"""A set of keys as a few thousand bits: no member is ever missed, and few others pass.

The bits come out of the scan that measures a batch anyway, in the same small space however large the batch. Set against
a table they spare it the job that would broadcast the keys themselves; whoever passes wrongly is dropped by the join after.
"""

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from karat.temporal.sql import Sql, every

FEW_KEYS = 10_000
"""Up to here few others pass: 7 in 100 at most, 1 in 300 for a fifth of the keys."""
PROBES = 2
"""Bits per key: one would let four times as many others pass, a third would cost more than it keeps out."""
_BITS = 32_768  # what Spark's bitmap functions hold
_WORD = 64

Bitmaps = tuple[bytes, ...]


def sketched(key: Column) -> Column:
    """An aggregate: the sketch of all values of the column, a bitmap per probe; see `bitmaps`."""
    return F.array(*(F.bitmap_construct_agg(_bit(key, probe)) for probe in range(PROBES)))


def bitmaps(found: Iterable[bytes | bytearray]) -> Bitmaps:
    """A sketch as it comes out of a row."""
    return tuple(map(bytes, found))


def joined(sketches: Sequence[Bitmaps]) -> Bitmaps:
    """The sketch of everything that is in any of them."""
    return tuple(reduce(_either, maps) for maps in zip(*sketches, strict=True))


def may_be_among(key: Sql, sketch: Bitmaps) -> Sql:
    """Whether the value can be one of those sketched."""
    found = []
    for probe, bitmap in enumerate(sketch):
        bit = f"pmod(xxhash64({key}, {probe}), {_BITS})"  # as `_bit` has it
        # one literal for the optimizer to fold, not five hundred for every rule to walk over
        words = f"from_json('{_words(bitmap)}', 'array<bigint>')"
        found.append(f"bit_get(get({words}, CAST(shiftright({bit}, 6) AS INT)), CAST({bit} % {_WORD} AS INT)) = 1")
    return every(found)


def _either(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one) | int.from_bytes(other)).to_bytes(len(one))


def _bit(key: Column, probe: int) -> Column:
    return F.pmod(F.xxhash64(key, F.lit(probe)), F.lit(_BITS))


def _words(bitmap: bytes) -> list[int]:
    """The bitmap as numbers of 64 bits, lowest bit first as Spark sets them."""
    return [int.from_bytes(bitmap[at : at + 8], "little", signed=True) for at in range(0, len(bitmap), 8)]
