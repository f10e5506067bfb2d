"""What is believed now: the live rows of the history as a table of their own, written beside it.

The history's commit says which commit of this table goes with it. After a crash between the two the next run finds that it is
missing, and makes the table from the history.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import functions as F

from karat.belief.schema import belief_form
from karat.belief.seat import Reached, Seat
from karat.belief.step import Judged
from karat.execute.acts import settled_acts, write
from karat.execute.beside import beside
from karat.lake.tables import Merge, Replacement
from karat.state.commits import Commit, Written
from karat.temporal.columns import IS_CURRENT, col
from karat.temporal.difference import acts_between

GOES_WITH = "present"
"""In the position of a commit to the history: the number of the commit to this table that goes with it."""


@dataclass(frozen=True)
class Present:
    """The table while it is being written."""

    number: Callable[[], int]
    """The commit that goes with the history's next one; waits where it is not known beforehand."""
    written: Callable[[], Written]
    """Waits until it is."""


@contextmanager
def present_beside(seat: Seat, judged: Judged, end: Reached) -> Iterator[Present]:
    """What is believed now, written beside whatever else is done."""
    table, commit = seat.belief.table, seat.commit(seat.belief.table, end)
    puts = judged.puts(seat.ground.subject) if judged.present is None else None
    with beside(seat.tables.session, lambda: _written(seat.apart(), judged, puts, commit)) as written:

        def number() -> int:
            if isinstance(puts, Replacement):  # it makes its commit, whatever it finds
                return commit.sequence
            written()
            return seat.number(table)

        yield Present(number, written)


def mended(seat: Seat) -> Written:
    """The table made to follow the history again, if a crash has left it behind."""
    belief, tables, position = seat.belief, seat.tables, seat.history.position
    if not tables.exists(belief.table) or seat.number(belief.table) >= int(position.get(GOES_WITH, 0)):
        return Written()
    form = belief_form(seat.ground.subject)
    columns = [col(name) for name in form.columns]
    live = tables.read(belief.history).where(F.col(IS_CURRENT)).select(*columns)
    acts = settled_acts(acts_between(live, tables.read(belief.table).select(*columns), form), form)
    return write(acts, belief.table, tables, seat.commit(belief.table, Reached(int(position["batch"]), int(position["rule"]))))


def _written(seat: Seat, judged: Judged, puts: Merge | Replacement | None, commit: Commit) -> Written:
    """What was found to differ, or what follows from the history's acts."""
    table, tables = seat.belief.table, seat.tables
    if judged.present is not None:
        return write(judged.present, table, tables, commit)
    if puts is None:
        return Written()
    if isinstance(puts, Replacement):
        return tables.replace(puts, table, commit)
    return tables.insert(puts, table, commit) if tables.version(table) == 0 else tables.merge(puts, table, commit)
