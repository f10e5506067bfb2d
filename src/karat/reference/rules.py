"""Where a statement stands under a rule."""

from typing import Any, Final

from karat.config.rules import Authority, Group
from karat.reference.statements import Statement

IS_DELETED: Final = "is_deleted"


def allows(decider: Group | Authority | None, source: str) -> bool:
    """The source has a say."""
    return decider is not None and (decider.sources is None or source in decider.sources)


def standing(statement: Statement, decider: Group | Authority) -> tuple[Any, ...]:
    """Where an allowed statement stands among its rivals; the greatest wins."""
    own_rank = statement.row["precedence_rank"]
    rank = own_rank if decider.sources is None else decider.sources[statement.source]
    first = (rank, statement.at) if decider.by == "precedence" else (statement.at, rank)
    # The order of statements puts the higher rank of a moment first, but here the higher one is to win: only its rest breaks ties.
    return *first, own_rank, *statement.order[2:]
