"""The models of `kind: entity`: an entity that many systems report on, and its feeds."""

import re
from typing import Annotated, Literal, LiteralString, NoReturn

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from karat.config.names import checked_identifier
from karat.config.setting import Setting, Text

_SIMPLE_TYPE = re.compile(
    r"string|boolean|tinyint|byte|smallint|short|int|integer|bigint|long|float|real|double|date|timestamp|timestamp_ntz|binary"
    r"|(?:decimal|dec|numeric)(?:\s*\(\s*\d{1,2}\s*(?:,\s*\d{1,2}\s*)?\))?|(?:varchar|char)\s*\(\s*\d+\s*\)"
)
OWNED_COLUMNS = frozenset(
    [
        "bk",
        "sk",
        "source_system",
        "source_type",
        "source_path",
        "source_file",
        "source_event_ts",
        "source_sequence_id",
        "ingest_ts",
        "ingest_run_id",
        "batch_seq",
        "op",
        "load_type",
        "entity_type",
        "precedence_rank",
        "is_deleted",
        "asserted_columns",
        "inherited",
        "attr_hash",
        "statement_hash",
        "record_hash",
        "hash_version",
        "time_basis",
        "snapshot_ts",
        "copies",
        "extra",
        "payload",
        "extraction_version",
        "feed",
        "effective_from",
        "effective_to",
        "is_current",
        "source_effective_to",
        "is_source_current",
        "first_seen_ts",
        "last_seen_ts",
        "seen_count",
        "last_event_ts",
        "corrects",
    ]
)
"""Column names that Karat reserves in bronze tables."""


def refuse(message: LiteralString, remedy: str) -> NoReturn:
    """Raises a configuration problem with its remedy."""
    kind = "karat"
    raise PydanticCustomError(kind, message, {"remedy": remedy})


def _ddl_type(text: str) -> str:
    """A Spark type in DDL, checked without Spark."""
    plain = text.strip().lower()
    if not _is_type(plain):
        refuse("not a type", "write a Spark type: string, bigint, decimal(18,2), date, timestamp, array<string>, ...")
    return text.strip()


def _is_type(text: str) -> bool:
    text = text.strip()
    if decimal := re.fullmatch(r"(?:decimal|dec|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", text):
        precision, scale = int(decimal[1]), int(decimal[2] or 0)
        return 1 <= precision <= 38 and scale <= precision  # noqa: PLR2004  (what Spark's decimals hold)
    if _SIMPLE_TYPE.fullmatch(text):
        return True
    nested = re.fullmatch(r"(array|map|struct)\s*<(.*)>", text, re.DOTALL)
    if nested is None:
        return False
    parts = _split(nested[2])
    match nested[1], len(parts):
        case ("array", 1) | ("map", 2):
            return all(_is_type(part) for part in parts)
        case ("struct", n) if n:
            fields = [re.match(r"\s*(?:`[^`]+`|\w+)\s*[:\s]\s*(.+)", part, re.DOTALL) for part in parts]
            return all(field is not None and _is_type(field[1]) for field in fields)
    return False


def _split(text: str) -> list[str]:
    """The parts between commas outside brackets."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _key(value: object) -> object:
    """Key columns with their types; `[a, b]` is short for `{a: string, b: string}`."""
    if isinstance(value, list):
        if len(set(map(str, value))) != len(value):
            refuse("a key column is named twice", "name each once")
        return dict.fromkeys(value, "string")
    return value


DdlType = Annotated[Text, AfterValidator(_ddl_type)]
Columns = Annotated[dict[Text, DdlType], Field(min_length=1)]
Key = Annotated[Columns, BeforeValidator(_key)]
DriftPolicy = Literal["keep", "ignore", "warn", "fail", "quarantine"]


class FilesSource(Setting):
    """Files, each of which is read once."""

    kind: Literal["files"]
    path: Text = Field(description="A path or glob, relative to the project, or any Hadoop filesystem URI.")
    format: Literal["json", "csv", "parquet", "text", "xml"] = Field(
        description="json: a document a line; csv: with header; text and xml (a document a line, a document a file) for `payload`."
    )
    options: dict[Text, str | int | bool] = Field(
        default_factory=dict, description="Reader options, as Spark names them (csv: sep, quote)."
    )


class TableSource(Setting):
    """A lake table, read by its change feed or above a watermark."""

    kind: Literal["table"]
    table: Text = Field(description="Any table of the lake: schema.table, or a path inside the lake.")
    mode: Literal["changes", "watermark"] = Field("changes", description="`changes` reads the Delta change feed.")
    watermark: Text | None = Field(None, description="mode: watermark: the column new rows are recognised by.")

    @model_validator(mode="after")
    def _watermark_has_a_column(self) -> "TableSource":
        if (self.mode == "watermark") != (self.watermark is not None):
            refuse("`watermark` and `mode: watermark` go together", "name the column, or leave both out")
        return self


Source = Annotated[FilesSource | TableSource, Field(discriminator="kind")]


class Contract(Setting):
    """What the source guarantees; what is left out is derived from the rest of the feed."""

    has_source_time: bool | None = None
    has_stable_bk: bool | None = None
    has_explicit_load_type: bool | None = None
    has_delete_semantics: bool | None = None


class Drift(Setting):
    """What to do when a feed's columns change."""

    new_columns: DriftPolicy = Field("keep", description="`keep` puts them in `extra`.")
    missing_columns: DriftPolicy = "fail"
    type_changes: DriftPolicy = "quarantine"


class LoadTypeColumn(Setting):
    """The load type in a column, row by row."""

    column: Text


class Feed(Setting):
    """One way in which a system's statements arrive."""

    name: Annotated[Text, AfterValidator(checked_identifier)]
    source_system: Text
    precedence_rank: int = Field(0, description="Higher wins; at the same instant the higher is ordered first.")
    source: Source = Field(validation_alias="from")
    envelope: Literal["flat", "debezium", "goldengate", "payload"] = "flat"
    load_type: Literal["FULL", "PARTIAL"] | LoadTypeColumn | None = Field(
        None, description="FULL rows assert every attribute; PARTIAL ones those that they carry. FULL without op: snapshots."
    )
    event_time: Text | None = Field(None, description="A column or SQL expression: when it was true, by the source.")
    sequence: Text | None = Field(None, description="A column or SQL expression that orders statements of the same instant.")
    op: Text | None = Field(None, description="c r u d t, insert/update/delete/truncate, I U D T, any case.")
    asserted: Text | None = Field(None, description="An array column with the names of the attributes that a partial row asserts.")
    map: dict[Text, Text] = Field(
        default_factory=dict,
        description="Attribute or key column: a field, `data.total` inside an object, or a SQL expression over the incoming row. A partial "
        "row says an attribute if the field is there, be it null; a null in the place of an object is one for all fields in it.",
    )
    delete_when: Text | None = Field(None, description="SQL predicate: such a row is an explicit delete.")
    absence_means: Literal["nothing", "deleted"] = "nothing"
    snapshot_of: Text | None = Field(None, description="The extract's as-of time; default: event_time.")
    max_absent: Annotated[float, Field(ge=0, le=1)] = Field(1.0, strict=False)
    contract: Contract = Field(default_factory=Contract)
    drift: Drift = Field(default_factory=Drift)
    document: Text | None = Field(None, description="payload: SQL expression for the document; default: the line or file.")
    extraction_version: Text | None = Field(None, description="payload: the version of `map`, kept on every row.")

    @property
    def is_change_stream(self) -> bool:
        """Whether the envelope itself has operation, time and key."""
        return self.envelope in {"debezium", "goldengate"}

    @property
    def sends_snapshots(self) -> bool:
        """Whether rows without an op are parts of a full extract."""
        return self.load_type == "FULL" and self.op is None and not self.is_change_stream

    @model_validator(mode="after")
    def _is_coherent(self) -> "Feed":
        snapshots = self.sends_snapshots or isinstance(self.load_type, LoadTypeColumn)
        if self.absence_means == "deleted" and not snapshots:
            refuse("only full snapshots can say that something is absent", "use load_type: FULL without op, or absence_means: nothing")
        if self.snapshot_of is not None and not snapshots:
            refuse("`snapshot_of` belongs to full snapshots", "use load_type: FULL without op, or leave it out")
        if self.is_change_stream and self.load_type not in {None, "PARTIAL"}:
            refuse("a change stream's load_type is PARTIAL: an image asserts the keys it has", "leave load_type out")
        if self.is_change_stream and isinstance(self.source, FilesSource) and self.source.format != "json":
            refuse("messages come in files of format json, one a line", "set format: json")
        if (self.envelope == "payload") != (self.extraction_version is not None):
            refuse("`envelope: payload` and `extraction_version` go together", "add extraction_version, or use another envelope")
        if self.envelope != "payload" and isinstance(self.source, FilesSource) and self.source.format in {"text", "xml"}:
            refuse("files of text or xml hold documents", "set envelope: payload")
        if self.document is not None and self.envelope != "payload":
            refuse("`document` belongs to `envelope: payload`", "leave it out")
        return self


class EntityDeclaration(Setting):
    """An entity: its key, its attributes and its feeds."""

    kind: Literal["entity"]
    name: Annotated[Text, AfterValidator(checked_identifier)]
    type: Literal["state", "transaction"] = "state"
    key: Key
    attributes: Columns
    untracked: list[Text] = Field(default_factory=list, description="Attributes whose change opens no version.")
    time_basis: Literal["source", "platform"] = "source"
    late_partials: Literal["pinned", "propagate"] = "pinned"
    sightings: Literal["exact", "lazy"] = "exact"
    feeds: Annotated[list[Feed], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_are_distinct(self) -> "EntityDeclaration":
        columns = [name.lower() for name in (*self.key, *self.attributes)]
        if len(set(columns)) != len(columns):
            refuse("two columns have the same name", "key and attributes must differ, also in case")
        if taken := [name for name in (*self.key, *self.attributes) if name.lower() in OWNED_COLUMNS or name.lower().startswith("__karat")]:
            refuse(f"{taken[0]} is a reserved column name", "rename it and use `map`")
        if any("`" in name for name in (*self.key, *self.attributes)):
            refuse("a column's name may not hold a backtick: Delta's change feed cannot carry it", "rename it and use `map`")
        if unknown := [name for name in self.untracked if name not in self.attributes]:
            refuse(f"untracked names {unknown[0]}, which is no attribute", "name attributes only")
        names = [feed.name for feed in self.feeds]
        if len(set(names)) != len(names):
            refuse("two feeds have the same name", "give each its own")
        for feed in self.feeds:
            if strange := [name for name in feed.map if name not in self.key and name not in self.attributes]:
                refuse(
                    f"feed {feed.name} maps {strange[0]}, which is neither key nor attribute",
                    "declare it, or leave it out",
                )
            if self.type == "transaction" and feed.absence_means == "deleted":
                refuse("facts are not deleted by their absence from an extract", "use absence_means: nothing")
        return self
