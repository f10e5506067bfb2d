"""The columns of a belief's tables, in their order, and how their rows are told apart."""

from pyspark.sql import types as T

from karat.belief.candidates import Subject
from karat.belief.conflicts import SAYS
from karat.belief.resolution import belief_columns
from karat.belief.restatements import AFTER, BEFORE, CAUSE, CHANGED
from karat.temporal.columns import BECAUSE, BECAUSE_HASH, BK, IS_CURRENT, IS_DELETED, RULE_VERSION, SK, VALID_FROM, VALID_TO
from karat.temporal.difference import Form
from karat.temporal.whose import WHOSE_BY_ATTRIBUTE

_TIME, _TEXT, _FLAG, _BYTES, _INT = T.TimestampType(), T.StringType(), T.BooleanType(), T.BinaryType(), T.IntegerType()
_OWNED: dict[str, T.DataType] = {
    IS_DELETED: _FLAG,
    RULE_VERSION: _INT,
    BECAUSE: WHOSE_BY_ATTRIBUTE,
    BK: _TEXT,
    SK: _BYTES,
}
_PERIOD: dict[str, T.DataType] = {VALID_FROM: _TIME, VALID_TO: _TIME, IS_CURRENT: _FLAG, BECAUSE_HASH: _BYTES}
_RECEIPT: dict[str, T.DataType] = {
    BK: _TEXT,
    SK: _BYTES,
    VALID_FROM: _TIME,
    VALID_TO: _TIME,
    CHANGED: T.ArrayType(_TEXT),
    BEFORE: T.MapType(_TEXT, _TEXT),
    AFTER: T.MapType(_TEXT, _TEXT),
    BECAUSE: WHOSE_BY_ATTRIBUTE,
    CAUSE: _TEXT,
    RULE_VERSION: _INT,
    "rule_version_before": _INT,
    "run_id": _TEXT,
    "restated_at": _TIME,
}
_CONFLICT: dict[str, T.DataType] = {
    BK: _TEXT,
    SK: _BYTES,
    "attribute": _TEXT,
    "value": _TEXT,
    "says": SAYS,
}


def belief_schema(key: dict[str, T.DataType], subject: Subject) -> T.StructType:
    """What is believed now."""
    return _schema({**key, **subject.attributes, **_OWNED})


def history_schema(key: dict[str, T.DataType], subject: Subject) -> T.StructType:
    """What is believed of every time."""
    return _schema({**key, **subject.attributes, **_OWNED, **_PERIOD})


def restatements_schema(key: dict[str, T.DataType]) -> T.StructType:
    """What was believed of the past before it changed."""
    return _schema({**key, **_RECEIPT})


def conflicts_schema(key: dict[str, T.DataType]) -> T.StructType:
    """Where sources differ now."""
    return _schema({**key, **_CONFLICT})


def belief_form(subject: Subject) -> Form:
    """One row per entity."""
    return Form(belief_columns(subject), (SK,))


def history_form(subject: Subject) -> Form:
    """One row per entity and start of a period."""
    return Form((*belief_columns(subject), *_PERIOD), (SK, VALID_FROM), IS_CURRENT, VALID_FROM, (BECAUSE,))


def conflicts_form(subject: Subject) -> Form:
    """One row per entity and attribute."""
    return Form((*subject.key, *_CONFLICT), (SK, "attribute"))


def receipts_form(subject: Subject) -> Form:
    """Receipts as they are found, without the run and the rules that go with them; none is ever changed."""
    return Form((*subject.key, BK, SK, VALID_FROM, VALID_TO, CHANGED, BEFORE, AFTER, BECAUSE, CAUSE), (SK,))


def _schema(fields: dict[str, T.DataType]) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])
