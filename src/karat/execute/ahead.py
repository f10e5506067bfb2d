"""Table logs read ahead of the commits that need them.

Delta replays a table's log before it commits to it, and reads the bounds its files note before it searches them. That depends on nothing
a step finds out: begun while it is still being found out, it is over when the commit comes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import functions as F

from karat.config.names import TableName
from karat.execute.beside import beside
from karat.execute.pace import interpreted, planned_once
from karat.lake.delta import DeltaTables
from karat.state.local_tables import local_files
from karat.temporal.columns import BK

FEW_FILES = 10_000
"""Files of a table up to which compiling Java for its log takes longer than reading it."""


@contextmanager
def logs_read_ahead(tables: DeltaTables, written: Sequence[TableName], searched: Sequence[TableName] = ()) -> Iterator[None]:
    """The logs of tables that will be written to are read meanwhile, and where files will be searched, what these note.

    Whatever goes wrong will be said by the commit itself.
    """
    apart = tables.apart()

    def read() -> None:
        for name in filter(apart.exists, (*written, *searched)):
            with planned_once(apart.session), interpreted(apart.session, few=_has_few_files(name, apart)):
                apart.extent(name)
        for name in filter(apart.exists, searched):
            apart.read(name).where(F.col(BK).isNull()).inputFiles()

    with beside(tables.session, read):
        yield


def _has_few_files(name: TableName, tables: DeltaTables) -> bool:
    """Whether a table is known to have few files."""
    path = tables.local_path(name)
    count = None if path is None else local_files(path)
    return count is not None and count <= FEW_FILES
