"""Values as others read them: JSON for machines, one line for people."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import date, datetime
from typing import Any

JSON_READY = (str, bool, int, type(None))


def plain(value: Any) -> Any:  # noqa: ANN401, PLR0911  (whatever a cell holds, one line per kind)
    """The value as JSON can tell it: bytes in hex, times in ISO, numbers that JSON does not have as text."""
    if isinstance(value, JSON_READY):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, date | datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value)


def legible(value: Any) -> str:  # noqa: ANN401  (whatever a cell holds)
    """The value in one line; what a terminal would obey instead of showing is spelt out."""
    ready = plain(value)
    text = ready if isinstance(ready, str) else "-" if ready is None else json.dumps(ready, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def short(moment: datetime) -> str:
    """A time to the minute, or as exactly as it is given."""
    text = f"{moment:%Y-%m-%d %H:%M}"
    if moment.second or moment.microsecond:
        text += f":{moment:%S}"
    return text + (f".{moment:%f}" if moment.microsecond else "")
