"""A belief compared with the evidence that it has consumed, row for row and with multiplicity."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as F

from karat.belief.context import belief_context
from karat.belief.rebuild import Rebuilt, at_one_step, rebuilt
from karat.config.resolved import Belief
from karat.lake.context import RunContext
from karat.lake.materialized import materialized
from karat.lake.verification import MEANING, MOST_SHOWN, Verified
from karat.state.rules_used import check_unedited
from karat.temporal.columns import ACTION, BK, VALID_FROM


def verify_belief(belief: Belief, run: RunContext) -> Verified:
    """Compare the belief's tables with the evidence; reads everything, changes nothing."""
    name, found = str(belief.table), belief_context(belief, run, run.tables())
    context = None if found is None else at_one_step(found)
    reached = None if context is None else context.progress_of(context.history)
    if context is None or reached is None:
        return Verified(name, equal=True)
    check_unedited(belief, context.history.checkpoint.position)
    counts: Counter[str] = Counter()
    shown: list[Mapping[str, Any]] = []
    with rebuilt(context, reached) as tables:
        for table in tables:
            _compare(table, counts, shown)
    return Verified(name, equal=not counts, differences=tuple(shown[:MOST_SHOWN]), counts=counts or None)


def _compare(table: Rebuilt, counts: Counter[str], shown: list[Mapping[str, Any]]) -> None:
    """What differs in one of the tables, added to what was found before."""
    name = str(table.state.name)
    since = F.col(VALID_FROM) if VALID_FROM in table.spec.columns else F.lit(None)
    # years beyond Python's own are shown as text
    with materialized(table.differences().select(ACTION, BK, since.cast("string").alias(VALID_FROM))) as rows:
        for row in rows.groupBy(ACTION).count().collect():
            counts[f"{MEANING[row[ACTION]]} ({name})"] += row["count"]
        first = rows.orderBy(BK, VALID_FROM, ACTION).limit(MOST_SHOWN).collect()
        shown += [{"table": name, "what": MEANING[row[ACTION]], BK: row[BK], VALID_FROM: row[VALID_FROM]} for row in first]
