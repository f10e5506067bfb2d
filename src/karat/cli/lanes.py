"""The values of one attribute over time as a picture: a lane for each source and one for what is believed.

     CRM ┣ Active ━━━━━━━━━━━━━━━━━━━━━━━━━x Active ·······
   ▸CORE               ┣ Restricted ━━━━━━━━━━━━━━━━━━━━━━━
believed ┣ Active (CRM)┣ Restricted (CORE) ━━━━━━━━━━━━━━━━
         03-01 09:00   03-02 10:00         03-04 12:00
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate, pairwise

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from karat.cli.periods import COLOURS
from karat.cli.plain import legible, short
from karat.inspect.values_over_time import ValuePeriod, ValuesOverTime

EDGE = 100
"""The width of the picture in characters, where there is room."""
LEAST = 12
"""The least distance of two instants in the picture, so that a short value and the time fit in between."""
AFTER = 0.08
"""The share of the whole time that is drawn after the last instant."""
BELIEVED = "believed"


def lanes(told: ValuesOverTime, winner: str | None, valid_at: datetime | None, console: Console) -> None:
    """Prints the picture; nothing for a single value, which the text above has."""
    periods = [period for own in (*told.by_source.values(), told.believed) for period in own]
    instants = sorted({period.start for period in periods} | {period.end for period in periods if period.end is not None})
    if len(instants) < 2:  # noqa: PLR2004  (one instant has no extent)
        return
    names = {source: f"{'▸' if source == winner else ''}{_named(source, told)}" for source in told.by_source}
    margin = max(cell_len(name) for name in (*names.values(), BELIEVED)) + 2
    width = max(2 * LEAST, min(EDGE, console.width) - margin - 1)
    places = dict(zip(instants, _places(instants, width), strict=True))
    colours = {source: COLOURS[index % len(COLOURS)] for index, source in enumerate(told.by_source)}
    for source, own in told.by_source.items():
        _print(console, Text(f"{names[source]:>{margin}} ", colours[source]), _lane(own, places, width, colours))
    _print(console, Text(f"{BELIEVED:>{margin}} ", "bold"), _lane(told.believed, places, width, colours, authors=True))
    _print(console, Text(" " * (margin + 1)), Text(_axis(places, width), "dim"))
    if valid_at is not None:
        _print(console, Text(" " * (margin + 1)), Text(_marked(valid_at, places, width), "bold"))


def _named(source: str, told: ValuesOverTime) -> str:
    return f"{legible(source)} (not allowed)" if source in told.not_allowed else legible(source)


def _places(instants: Sequence[datetime], width: int) -> list[int]:
    """Where each instant is drawn: as far apart as in time, but no closer than a label needs."""
    spans = [(later - earlier).total_seconds() for earlier, later in pairwise(instants)]
    least = min(LEAST, width // len(instants))
    share = (width - least * len(instants)) / (sum(spans) * (1 + AFTER))
    return [int(place) for place in accumulate((least + span * share for span in spans), initial=0.0)]


def _lane(
    own: Sequence[ValuePeriod], places: Mapping[datetime, int], width: int, colours: Mapping[str, str], *, authors: bool = False
) -> Text:
    """Solid while the entity is held live, dotted while it is held deleted; with `authors`, each value with its source."""
    lane = Text()
    for period in own:
        start = max(places[period.start], cell_len(lane.plain))
        room = (width if period.end is None else places[period.end]) - start
        lane.append(" " * (start - cell_len(lane.plain)))
        author = f" ({legible(period.source)})" if authors and period.source else ""
        lane.append(_stretch(period, room, author), colours.get(period.source, ""))
    return lane


def _stretch(period: ValuePeriod, room: int, author: str) -> str:
    head, line = ("x", "·") if period.gone else ("┣", "━")
    if room < 5:  # noqa: PLR2004  (head, blank, two letters, blank)
        return (head + line * room)[: max(0, room)]
    label = legible(period.value)
    label = label + author if cell_len(label + author) <= room - 3 else _cut(label, room - 3)
    return f"{head} {label} ".ljust(room + len(label) - cell_len(label), line)


def _cut(text: str, room: int) -> str:
    return text if cell_len(text) <= room else set_cell_size(text, room - 1) + "…"


def _axis(places: Mapping[datetime, int], width: int) -> str:
    """The times of the moments that have room for it."""
    manner = "%m-%d %H:%M" if len({moment.year for moment in places}) == 1 else "%Y-%m-%d"
    line = ""
    for moment, place in places.items():
        if place >= len(line) + bool(line):
            line = line.ljust(place) + moment.strftime(manner)
    return line[:width]


def _marked(valid_at: datetime, places: Mapping[datetime, int], width: int) -> str:
    """The time asked about, under the moments it lies between."""
    before = [moment for moment in places if moment <= valid_at]
    after = next((moment for moment in places if moment > valid_at), None)
    if not before:
        place = 0
    elif after is None:
        place = places[before[-1]] if before[-1] == valid_at else width - 1
    else:
        part = (valid_at - before[-1]) / (after - before[-1])
        place = places[before[-1]] + int((places[after] - places[before[-1]]) * part)
    label = f"valid at {short(valid_at)}"
    mark = f"▲ {label}" if before else f"◂ {label}"
    return " " * place + mark if place + len(mark) <= width else " " * (place - len(label) - 1) + f"{label} ▲"


def _print(console: Console, margin: Text, line: Text) -> None:
    console.print(margin + line, overflow="ellipsis", no_wrap=True, highlight=False)
