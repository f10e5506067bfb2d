"""The picture of values over time: what fits, what is cut, and that nothing is wider than the page."""

from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from karat.cli.lanes import EDGE, lanes
from karat.inspect.values_over_time import ValuePeriod, ValuesOverTime

START = datetime(2026, 3, 1, tzinfo=UTC)


def periods(source: str, *told: tuple[object, float, float | None]) -> list[ValuePeriod]:
    return [
        ValuePeriod(source, value, False, START + timedelta(days=start), None if end is None else START + timedelta(days=end))
        for value, start, end in told
    ]


def drawn(values: ValuesOverTime, valid_at: datetime | None = None, width: int = 200) -> list[str]:
    console = Console(width=width, record=True, quiet=False, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    lanes(values, "CRM", valid_at, console)
    console.file.close()
    return console.export_text().splitlines()


def test_a_lane_each_and_one_for_what_is_believed() -> None:
    told = periods("CRM", ("Active", 0, 1), ("Closed", 1, None))
    crm, believed, axis = drawn(ValuesOverTime({"CRM": told}, frozenset(), told))
    assert (crm.split()[0], believed.split()[0]) == ("▸CRM", "believed")
    assert "┣ Closed (CRM) ━" in believed
    assert axis.split() == ["03-01", "00:00", "03-02", "00:00"]
    assert axis.index("03-02") == crm.index("┣ Closed")


def test_moments_close_together_are_drawn_apart() -> None:
    told = periods("CRM", ("One", 0, 0.00001), ("Two", 0.00001, 300), ("Three", 300, None))
    crm, *_ = drawn(ValuesOverTime({"CRM": told}, frozenset(), told))
    assert [label in crm for label in ("┣ One ", "┣ Two ", "┣ Three ")] == [True] * 3


@pytest.mark.parametrize("width", [40, 60, 100, 200])
@pytest.mark.parametrize("number", [2, 5, 60])
def test_the_picture_fits_the_page(width: int, number: int) -> None:
    told = periods("CRM", *(("株式会社 long value " * 3, n, n + 1) for n in range(number)), ("last", number, None))
    values = ValuesOverTime({"CRM": told, "A longer name": told[:1]}, frozenset({"A longer name"}), told)
    for valid_at in (None, START - timedelta(days=1), START + timedelta(days=0.5), START + timedelta(days=900)):
        lines = drawn(values, valid_at, width)
        assert len(lines) == 4 + (valid_at is not None)
        assert max(Console(width=300).measure(line).maximum for line in lines) <= min(EDGE, width)


def test_a_single_word_needs_no_picture() -> None:
    told = periods("CRM", ("Active", 0, None))
    assert drawn(ValuesOverTime({"CRM": told}, frozenset(), told)) == []


def test_years_are_told_where_there_are_several() -> None:
    told = periods("CRM", ("Active", 0, 400), ("Closed", 400, None))
    assert drawn(ValuesOverTime({"CRM": told}, frozenset(), told))[-1].split() == ["2026-03-01", "2027-04-05"]
