"""What new statements are about, and the held versions that they concern: looked up once, in one scan of the timeline."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.context import StageContext
from karat.bronze.continuation import concerned_versions
from karat.bronze.new_evidence import EvidenceState, NewEvidence, new_evidence, spans
from karat.lake.materialized import materialized
from karat.temporal.columns import SK, SOURCE_EFFECTIVE_TO
from karat.temporal.moments import moment


@dataclass(frozen=True)
class Concerned:
    """New statements in sum, key by key, and the versions that they concern."""

    keys: DataFrame
    """See `spans`."""
    new: NewEvidence
    versions: DataFrame
    """See `concerned_versions`; none where nothing is held."""
    at: int | None
    """The version of the timeline in which they were looked up."""


@contextmanager
def concerned_by(statements: DataFrame, before: EvidenceState, context: StageContext) -> Iterator[Concerned]:
    """What these statements concern, usable inside the block."""
    with materialized(spans(statements, before, context.schema)) as of_keys:
        new = new_evidence(of_keys)
        source_level = () if context.schema.is_transaction else new.source_level
        held = _ending_after(context.versions(), new.earliest, context)
        found = concerned_versions(held, of_keys.where(F.col(SK).isNotNull()), source_level)
        if context.timeline.is_empty or not (new.about_keys or source_level):
            yield Concerned(of_keys, new, found, context.timeline.version)
            return
        with materialized(found) as versions:
            yield Concerned(of_keys, new, versions, context.timeline.version)


def _ending_after(held: DataFrame, since: datetime | None, context: StageContext) -> DataFrame:
    """The versions that end at or after a time; the literal keeps files of older ones closed. Facts have no end."""
    if context.schema.is_transaction or since is None:
        return held
    return held.where(F.col(SOURCE_EFFECTIVE_TO).isNull() | (F.col(SOURCE_EFFECTIVE_TO) >= moment(since)))
