"""Times from text: a day, or a day and a time, in UTC unless it has an offset."""

from datetime import UTC, datetime


def moment_of(text: str) -> datetime:
    """The time in UTC of `2026-03-02` (its first instant), `2026-03-02 12:00` or `2026-03-02T12:00:00+01:00`; else `ValueError`."""
    try:
        return in_utc(datetime.fromisoformat(text.strip()))
    except OverflowError:  # the first and last day of all time have no room for an offset
        raise ValueError(text) from None


def in_utc(moment: datetime | None) -> datetime:
    """The time in UTC; a naive time is UTC already, None is now."""
    if moment is None:
        return datetime.now(UTC)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
