"""An answer of delta-rs waited for without holding up other threads.

Its reader computes as it is read and keeps Python to itself meanwhile. Read through Arrow's C stream interface, whose functions are called
without Python's lock, whatever else is being planned goes on.
"""

import ctypes
from typing import Final, Protocol

_ADDRESS: Final = ctypes.c_void_p


class Answer(Protocol):
    """Whatever can be read as a stream of Arrow arrays."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule that holds the stream, and lets go of it in the end."""


class _Stream(ctypes.Structure):
    _fields_ = [(name, _ADDRESS) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")]


class _Array(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        *((name, _ADDRESS) for name in ("buffers", "children", "dictionary", "release", "private_data")),
    ]


_GET_NEXT: Final = ctypes.CFUNCTYPE(ctypes.c_int, _ADDRESS, _ADDRESS)
_RELEASE: Final = ctypes.CFUNCTYPE(None, _ADDRESS)
_POINTER: Final = ctypes.PYFUNCTYPE(_ADDRESS, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def awaited(answer: Answer) -> int:
    """All of the answer computed, and how many rows it had; an `OSError` where it fails on the way."""
    capsule = answer.__arrow_c_stream__()
    address = _POINTER(capsule, b"arrow_array_stream")
    get_next = _GET_NEXT(_Stream.from_address(address).get_next)
    rows = 0
    while True:
        array = _Array()
        if error := get_next(address, ctypes.addressof(array)):
            raise OSError(error, "the answer broke off")
        if not array.release:
            return rows
        rows += array.length
        _RELEASE(array.release)(ctypes.addressof(array))
