"""How a rule ranks the candidates for an attribute."""

from typing import Any, Final

from karat.config.rules import Authority, Group
from karat.reference.statements import Statement

IS_DELETED: Final = "is_deleted"


def allows(decider: Group | Authority | None, source: str) -> bool:
    """Whether the rule considers the source."""
    return decider is not None and (decider.sources is None or source in decider.sources)


def rank_key(statement: Statement, decider: Group | Authority) -> tuple[Any, ...]:
    """The sort key of a candidate; the greatest wins."""
    own_rank = statement.row["precedence_rank"]
    rank = own_rank if decider.sources is None else decider.sources[statement.source]
    first = (rank, statement.at) if decider.by == "precedence" else (statement.at, rank)
    # the order of statements puts the higher rank of an instant first, but here it must win: only the rest of it breaks ties
    return *first, own_rank, *statement.order[2:]
