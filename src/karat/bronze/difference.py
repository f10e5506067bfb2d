"""The difference between the versions that should be and those that are held."""

from pyspark.sql import DataFrame

from karat.bronze.shape import timeline_schema
from karat.temporal.columns import (
    EFFECTIVE_FROM,
    FIRST_SEEN,
    IS_SOURCE_CURRENT,
    LAST_EVENT_TS,
    LAST_SEEN,
    SEEN_COUNT,
    SK,
    STATEMENT_HASH,
)
from karat.temporal.difference import Form, acts_between
from karat.temporal.entity_schema import EntitySchema

IDENTITY = (SK, STATEMENT_HASH, EFFECTIVE_FROM)
"""What tells one version from another: the statement that opened it, and where it begins."""
SIGHTINGS = frozenset({FIRST_SEEN, LAST_SEEN, SEEN_COUNT, LAST_EVENT_TS})


def differences(fresh: DataFrame, held: DataFrame, terms: EntitySchema, *, lazy: bool = False) -> DataFrame:
    """The acts that turn the held versions into the fresh ones. Grain: one row per version that differs.

    With `lazy`, a version that was merely seen again does not differ.
    """
    return acts_between(fresh, held, timeline_form(terms), SIGHTINGS if lazy else ())


def timeline_form(terms: EntitySchema) -> Form:
    """How versions are told apart and laid out; facts have no end, so none of them is over."""
    return Form(timeline_schema(terms).names, IDENTITY, None if terms.is_transaction else IS_SOURCE_CURRENT, EFFECTIVE_FROM)
