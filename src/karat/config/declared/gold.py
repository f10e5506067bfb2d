"""The models of `kind: dimension`, `fact` and `bridge`: the star that is made from curated tables by SQL."""

from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from karat.config.declared.belief import Moment
from karat.config.declared.curation import OrderColumn
from karat.config.declared.entity import refuse
from karat.config.names import checked_identifier
from karat.config.setting import Setting, Text

Name = Annotated[Text, AfterValidator(checked_identifier)]
Names = Annotated[list[Text], Field(min_length=1)]
Mode = Literal["full", "cdf"]
OnFullChange = Literal["ignore", "rebuild", "affected"]
Missing = Literal["skeleton", "member", "quarantine", "fail"]


def _day(value: object) -> object:
    """A day of the calendar."""
    if not isinstance(value, str):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError:
        refuse("not a day", "write it as 2026-01-31")


Day = Annotated[date, BeforeValidator(_day)]


class SourceOfTarget(Setting):
    """A table that the SQL reads under an alias."""

    table: Text = Field(description="Any table of the lake: `schema.table`, or a path inside the lake.")
    alias: Name = Field(description="The name by which the SQL knows it.")
    mode: Mode = Field(
        "full", description="`cdf`: only what changed since the version that was read last; `full`: the whole table every time."
    )


class SurrogateKey(Setting):
    """The key that facts carry."""

    column: Name
    strategy: Literal["hash", "sequence", "identity"] = Field(
        "hash", description="`hash`: xxhash64 of the natural key; `sequence`: the highest key and counting; `identity`: by Delta."
    )


class Periods(Setting):
    """The columns of a source that has periods already."""

    start: Text = Field(alias="from")
    end: Text = Field(alias="to")


class Calendar(Setting):
    """A dimension of days that is generated, not read."""

    start: Day = Field(alias="from")
    end: Day = Field(alias="to")
    fiscal_year_starts: Annotated[int, Field(ge=1, le=12)] = Field(1, description="The month with which a fiscal year begins.")

    @model_validator(mode="after")
    def _runs_forward(self) -> "Calendar":
        if self.end < self.start:
            refuse("the calendar ends before it begins", "let `to` be later than `from`")
        return self


class Target(Setting):
    """What every table of the star declares."""

    name: Name
    sources: list[SourceOfTarget] = Field(default_factory=list)
    sql: Text | None = Field(None, description="A query over the aliases; Jinja2 in a sandbox knows `var`, `this` and `run`.")
    sql_file: Text | None = Field(None, description="The same in a file of the project.")
    on_full_change: OnFullChange = Field(
        "ignore", description="When a `full` source changed: `rebuild` everything, only the `affected` keys, or `ignore` it."
    )
    partition_by: list[Text] = Field(default_factory=list)
    cluster_by: list[Text] = Field(default_factory=list, description="Liquid clustering; not together with `partition_by`.")
    zorder_by: list[Text] = Field(default_factory=list, description="Columns by which `karat maintain` lays rows close together.")

    @model_validator(mode="after")
    def _has_one_query(self) -> "Target":
        if self.sql is not None and self.sql_file is not None:
            refuse("there are two queries", "keep `sql` or `sql_file`")
        aliases = [source.alias.lower() for source in self.sources]
        if len(set(aliases)) < len(aliases):
            refuse("two sources have one alias", "give each source an alias of its own")
        if self.cluster_by and (self.partition_by or self.zorder_by):
            refuse("a clustered table has neither partitions nor Z-order", "keep `cluster_by` alone")
        return self

    def needs_query(self) -> None:
        """Refuse a target without sources or SQL."""
        if not self.sources:
            refuse("there is no source", "add sources: [{table: silver.customer, alias: c, mode: cdf}]")
        if self.sql is None and self.sql_file is None:
            refuse("there is no query", "add `sql`, or `sql_file`")


class DimensionDeclaration(Target):
    """A table of members, one row each (SCD1) or one per version (SCD2), that facts point at by surrogate key."""

    kind: Literal["dimension"]
    scd_type: Literal[1, 2] = Field(2, description="1 keeps the present state, 2 keeps every version with its period.")
    natural_keys: list[Text] = Field(default_factory=list, description="The columns that identify a member in its source.")
    surrogate_key: SurrogateKey | None = Field(None, description="Default: `<name>_sk` by hash.")
    track: Names | None = Field(None, description="The columns whose change opens a version; default: every column but the keys.")
    effective_at: Text | None = Field(None, description="The column a version starts at; default: the source's commit time.")
    absence_means: Literal["nothing", "deleted"] = Field("nothing", description="`deleted`: members a `full` source lacks are gone.")
    open_end: Moment | None = Field(None, description="The end of a period that has none yet; default: null.")
    periods: Periods | None = Field(None, description="The columns of a source that has periods already; they are taken as they are.")
    late_dimension: Literal["keep", "repoint"] = Field(
        "keep", description="What becomes of facts in the period of a version that is inserted in the past."
    )
    initial: Literal["snapshot", "changes"] = Field("snapshot", description="What a first run of a `cdf` source starts from.")
    calendar: Calendar | None = Field(None, description="A generated date dimension; then there is no source and no SQL.")

    @model_validator(mode="after")
    def _fits_together(self) -> "DimensionDeclaration":
        if self.calendar is not None:
            if self.sources or self.sql or self.sql_file or self.natural_keys or self.surrogate_key:
                refuse("a calendar is generated: it has no source, no query and no keys of its own", "keep `name` and `calendar`")
            return self
        self.needs_query()
        if not self.natural_keys:
            refuse("there is no natural key", "add natural_keys: [customer_id]")
        if self.periods is not None and (self.scd_type == 1 or self.effective_at is not None):
            refuse("periods are taken as they are", "use scd_type: 2 without effective_at")
        if self.absence_means == "deleted" and any(source.mode == "cdf" for source in self.sources):
            refuse("a change feed shows what changed, not what there is", "absence_means: deleted needs `full` sources")
        return self


class Lookup(Setting):
    """A dimension's key for each fact, by the version that was valid at the fact's own time."""

    dimension: Text
    on: Annotated[dict[Text, Text], Field(min_length=1)] = Field(
        description="The dimension's column to a column or expression of the fact."
    )
    at: Text | None = Field(None, description="The fact's own time; default: the current version is taken.")
    into: Name = Field(description="The column of the fact that carries the key.")
    missing: Missing = Field(
        "skeleton", description="Where no version is found: a `skeleton` is made, the `member` -3 is taken, or the row is refused."
    )
    when_null: Literal["missing", "not_applicable", "not_yet_known", "bad_value"] = Field(
        "missing", description="The reserved member of a fact whose natural key is null: -1, -2, -3 or -4."
    )


class FactDeclaration(Target):
    """A table of facts, one row for each grain."""

    kind: Literal["fact"]
    grain: Names = Field(description="The columns that identify a fact.")
    lookups: list[Lookup] = Field(default_factory=list)
    load: Literal["upsert", "append", "accumulating", "periodic"] = Field(
        "upsert",
        description="`upsert`: the latest row of each grain; `append`: a grain is written once; `accumulating`: milestones fill in; "
        "`periodic`: the rows of a period are replaced whole.",
    )
    milestones: list[Text] = Field(default_factory=list, description="Of an accumulating fact: columns that, once known, stay known.")
    period: Text | None = Field(None, description="Of a periodic fact: the column that names the period.")
    order_by: list[OrderColumn] = Field(
        default_factory=list, description="Which row of a grain counts: the first in this order; default: the last committed."
    )
    on_duplicate: Literal["latest", "quarantine"] = Field("latest", description="Several rows of one grain in a batch.")
    deletes: Literal["delete", "ignore"] = Field("delete", description="What a row that is gone from a source means for its fact.")

    @model_validator(mode="after")
    def _fits_together(self) -> "FactDeclaration":
        self.needs_query()
        if (self.load == "accumulating") != bool(self.milestones):
            refuse("milestones belong to an accumulating fact", "set load: accumulating and name its milestones")
        if (self.load == "periodic") != (self.period is not None):
            refuse("a period belongs to a periodic fact", "set load: periodic and name its period column")
        if self.period is not None and self.period not in self.grain:
            refuse("the period is not in the grain", "add the period's column to the grain")
        if self.load == "periodic" and any(source.mode == "cdf" for source in self.sources):
            refuse("a periodic snapshot sees everything", "use mode: full")
        columns = [lookup.into.lower() for lookup in self.lookups]
        if len(set(columns)) < len(columns):
            refuse("two lookups fill one column", "give each lookup an `into` of its own")
        return self


class Side(Setting):
    """One side of a bridge."""

    dimension: Text
    on: Annotated[dict[Text, Text], Field(min_length=1)] | None = Field(
        None, description="The dimension's natural key to the columns of the query; default: columns of the same names."
    )


def _sides(value: object) -> object:
    """`{account: dim_account}` is short for `{account: {dimension: dim_account}}`."""
    if not isinstance(value, dict):
        return value
    return {role: {"dimension": side} if isinstance(side, str) else side for role, side in value.items()}


class BridgeDeclaration(Target):
    """A table between two dimensions of which each member may have many of the other's."""

    kind: Literal["bridge"]
    between: Annotated[dict[Name, Side], BeforeValidator(_sides), Field(min_length=2, max_length=2)] = Field(
        description="Two roles and their dimensions; rows of one member of the first make a group."
    )
    weight: Text | None = Field(None, description="The column of weights: those of one group sum to 1, or the group is quarantined.")

    @model_validator(mode="after")
    def _fits_together(self) -> "BridgeDeclaration":
        self.needs_query()
        return self
