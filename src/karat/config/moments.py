"""Points in time as people give them: a day, or a time of one, UTC unless it says otherwise."""

from datetime import UTC, datetime


def moment_of(text: str) -> datetime:
    """`2026-03-02`, `2026-03-02 12:00` or `2026-03-02T12:00:00+01:00`, in UTC; a day is its first instant. Raises `ValueError`."""
    try:
        return in_utc(datetime.fromisoformat(text.strip()))
    except OverflowError:  # the first and last day of all time have no room for an offset
        raise ValueError(text) from None


def in_utc(moment: datetime | None) -> datetime:
    """The moment in UTC, which a naive one is in already; now, where there is none."""
    if moment is None:
        return datetime.now(UTC)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
