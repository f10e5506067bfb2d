"""Table logs read ahead of the commits that need them.

Delta replays a table's log before it commits to it, and reads the bounds its files note before it searches them. That depends on nothing
a step finds out: begun while it is still being found out, it is over when the commit comes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import functions as F

from karat.config.names import TableName
from karat.execute.beside import beside
from karat.execute.delta import DeltaTables
from karat.temporal.columns import BK


@contextmanager
def logs_read_ahead(tables: DeltaTables, appended: Sequence[TableName], replaced: Sequence[TableName]) -> Iterator[None]:
    """The logs of tables that will be appended to, and of tables rows of which will be replaced, are read meanwhile.

    Whatever goes wrong will be said by the commit itself.
    """
    apart = tables.apart()

    def read() -> None:
        for name in filter(apart.exists, (*appended, *replaced)):
            apart.extent(name)
        for name in filter(apart.exists, replaced):
            apart.read(name).where(F.col(BK).isNull()).inputFiles()

    with beside(tables.session, read):
        yield
