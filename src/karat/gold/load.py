"""One table of the star brought up to date: what its sources changed is read, computed, and written in one commit with the versions read.

state       the target's log and each source's are read once; where nothing is newer, that is all
read        changed rows, or the keys they concern, or everything
compute     members and versions, facts with their keys, or groups of a bridge
commit      the difference, with the version of every source
"""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from karat.config.star import Bridge, Dimension, Fact, StarTable
from karat.gold.context import StarContext, star_context
from karat.gold.load_bridge import load_bridge
from karat.gold.load_dimension import load_dimension
from karat.gold.load_fact import load_fact
from karat.lake.context import RunContext
from karat.lake.outcome import Outcome
from karat.plan.stages import Load
from karat.sources.changes import is_vacuumed, vacuumed


def load(stage: Load, run: RunContext) -> Outcome:
    """Bring the table up to date; a second run over the same versions commits nothing."""
    context = star_context(stage, run)
    try:
        outcome = _loaded(stage.star, context)
    except (PySparkException, Py4JJavaError) as failure:
        lost = next((each for each in context.sources if each.source.is_feed and each.read is not None and each.is_changed), None)
        if lost is not None and lost.read is not None and is_vacuumed(failure):
            raise vacuumed(str(lost.source.table), lost.read + 1, lost.version) from failure
        raise
    return outcome


def _loaded(star: StarTable, context: StarContext) -> Outcome:
    match star:
        case Dimension():
            return load_dimension(star, context)
        case Fact():
            return load_fact(star, context)
        case Bridge():
            return load_bridge(star, context)
        case _:
            message = f"{star.name} is no table of the star"
            raise AssertionError(message)
