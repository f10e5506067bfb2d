"""Rough bounds: never later than what they stand for, never far from it, and mostly the same."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from karat.temporal.moments import roughly

NOW = datetime(2026, 5, 17, 9, 41, 7, tzinfo=UTC)
MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(MOMENTS, MOMENTS)
def test_a_rough_bound_leaves_out_nothing_and_lets_in_little_more(value: datetime, seen_from: datetime) -> None:
    bound = roughly(value, seen_from)
    assert timedelta(0) <= value - bound < max(timedelta(hours=1), abs(seen_from - value) / 8)


def test_batches_of_one_hour_have_the_same_bound() -> None:
    bounds = {roughly(NOW - timedelta(minutes=minute), NOW) for minute in range(41)}
    assert bounds == {datetime(2026, 5, 17, 9, tzinfo=UTC)}


def test_what_is_weeks_old_has_the_same_bound_for_a_day_or_more() -> None:
    late = [roughly(NOW - timedelta(days=30) + timedelta(hours=hour), NOW + timedelta(hours=hour)) for hour in range(48)]
    assert len(set(late)) <= 3


def test_the_first_moment_of_all_is_its_own_bound() -> None:
    first = datetime(1, 1, 1, tzinfo=UTC)
    assert roughly(first, NOW) == first
