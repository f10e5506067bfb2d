"""The models of `kind: curation`: settings and tables, in JSON or YAML."""

import re
from datetime import UTC, datetime
from typing import Annotated, Literal, LiteralString

from pydantic import AfterValidator, AliasChoices, Field, model_validator
from pydantic_core import PydanticCustomError

from karat.config.names import checked_identifier
from karat.config.setting import Setting, Text

_UNIT = r"(?:year|quarter|month|week|day|hour|minute|second|millisecond|microsecond)s?"
_SPAN = rf"(?:\d+\s*{_UNIT}|\d+\.\d+\s*seconds?)\s*"
_INTERVAL_WORDS = re.compile(rf"(?:interval\s+)?(?:{_SPAN})+", re.IGNORECASE)
_INTERVAL_QUOTED = re.compile(rf"(?:interval\s+)?'\d[- :.0-9]*'\s*{_UNIT}(?:\s+to\s+{_UNIT})?", re.IGNORECASE)
_INTERVAL_QUOTED_WORDS = re.compile(rf"interval\s+'(?:{_SPAN})+'", re.IGNORECASE)
_ORDER = re.compile(r"(.+?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?", re.IGNORECASE | re.DOTALL)


def _refusal(message: LiteralString, remedy: str) -> PydanticCustomError:
    return PydanticCustomError("karat", message, {"remedy": remedy})


def _interval(text: str) -> str:
    if not any(form.fullmatch(text.strip()) for form in (_INTERVAL_WORDS, _INTERVAL_QUOTED, _INTERVAL_QUOTED_WORDS)):
        message, remedy = "not an interval", "write it as Spark does: 2 HOURS, 1 DAY 30 MINUTES, '90' MINUTE"
        raise _refusal(message, remedy)
    return text.strip()


def _timestamp(text: str) -> str:
    parse_timestamp(text)
    return text


def _order(text: str) -> str:
    if not _ORDER.fullmatch(text.strip()):
        message, remedy = "not an order column", "write `column ASC` or `column DESC`"
        raise _refusal(message, remedy)
    return text.strip()


def parse_timestamp(text: str) -> datetime:
    """A timestamp from configuration, in UTC unless it has an offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message, remedy = "not a timestamp", "write it as 9999-12-31 23:59:59"
        raise _refusal(message, remedy) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def parse_order(text: str) -> tuple[str, bool, bool | None]:
    """Column, whether it descends, and whether nulls come first (None: as Spark has it for the direction)."""
    match = _ORDER.fullmatch(text.strip())
    if match is None:
        message = f"not an order column: {text}"
        raise ValueError(message)
    name = match[1].strip()
    if name.startswith("`") and name.endswith("`"):
        name = name[1:-1].replace("``", "`")
    return name, (match[2] or "asc").lower() == "desc", None if match[3] is None else match[3].lower() == "first"


Interval = Annotated[Text, AfterValidator(_interval)]
Timestamp = Annotated[Text, AfterValidator(_timestamp)]
OrderColumn = Annotated[Text, AfterValidator(_order)]
Columns = Annotated[list[Text], Field(min_length=1)]


class Scd2Columns(Setting):
    """The names of the three columns that carry a version's period."""

    effective_start_date: Text = Field("effective_start_date", validation_alias=AliasChoices("effective_start_date", "start"))
    effective_end_date: Text = Field("effective_end_date", validation_alias=AliasChoices("effective_end_date", "end"))
    is_current: Text = Field("is_current", validation_alias=AliasChoices("is_current", "curr"))

    @model_validator(mode="after")
    def _are_three(self) -> "Scd2Columns":
        if len({self.effective_start_date.lower(), self.effective_end_date.lower(), self.is_current.lower()}) != 3:  # noqa: PLR2004
            message, remedy = "the three columns need three names", "name start, end and current differently"
            raise _refusal(message, remedy)
        return self


class CurationTable(Setting):
    """One table to curate: its source, its key and its kind of history."""

    table_name: Text | None = Field(None, description="For documentation only; the target names the table.")
    source_table: Text = Field(description="Any table of the lake: `schema.table`, or a path inside the lake.")
    target_table: Text = Field(description="The silver table that is written.")
    scd_type: Literal[1, 2] = Field(description="1 keeps the present state, 2 keeps every version with its period.")
    business_key_columns: Columns = Field(description="What identifies an entity within its source system.")
    source_system_column: Text | None = Field(
        None,
        validation_alias=AliasChoices("source_system_column", "source_system_col"),
        description="The column that says which system a row comes from; part of the key.",
    )
    watermark_column: Text | None = Field(None, description="The column new rows are recognised by.")
    lookback_interval: Interval | None = Field(None, description="How far below the watermark to read again for late rows.")
    dedup_order_columns: Annotated[list[OrderColumn], Field(min_length=1)] | None = Field(
        None, description="Which of a key's rows in one batch is kept: the first in this order."
    )
    scd2_columns: Scd2Columns = Field(default_factory=Scd2Columns, description="Names of the period's columns.")
    track_columns: Columns | None = Field(None, description="The columns whose change counts.")
    transformation_sql_path: Text | None = Field(None, description="A query over the view `source_incremental`.")
    enabled: bool = Field(default=True, description="false leaves the table alone.")
    out_of_order: Literal["ignore", "place"] = Field(
        "ignore", description="`place` (SCD2) keeps every distinct state and puts late rows where they belong in history."
    )
    hash: Literal["md5", "sha256"] = Field("md5", description="The function behind `_pk_hash` and `_diff_hash`.")
    effective_from_column: Text | None = Field(None, description="The column a version starts at; default: the watermark column.")
    schema_evolution: Literal["fail", "add"] = Field("fail", description="What to do with a column the target does not have.")

    @model_validator(mode="after")
    def _placing_needs_history(self) -> "CurationTable":
        if self.out_of_order == "place" and self.scd_type == 1:
            message, remedy = "out_of_order: place needs a table with history", "use scd_type 2, or out_of_order: ignore"
            raise _refusal(message, remedy)
        return self


class CurationSettings(Setting):
    """Settings for all tables of the declaration."""

    catalog: Annotated[Text, AfterValidator(checked_identifier)] | None = Field(
        None, description="Counts only where karat.yml names a catalog."
    )
    schema_bronze: Text = Field("bronze", description="Schema of sources named without one.")
    schema_silver: Text = Field("silver", description="Schema of targets named without one.")
    control_table: Text = Field("silver.curation_control", description="One row per table: how far it has been read.")
    audit_table: Text = Field("silver.curation_audit_log", description="One row per table and run: what happened.")
    default_watermark_column: Text = "ingestion_ts"
    default_lookback_interval: Interval = "2 HOURS"
    default_dedup_order_columns: Annotated[list[OrderColumn], Field(min_length=1)] | None = Field(
        None, description="Default: the watermark column, latest first."
    )
    scd2_end_date_value: Timestamp = Field("9999-12-31 23:59:59", description="The end of a period that has none yet.")
    workspace_file_path: Text | None = Field(None, description="A second folder in which transformations are looked for.")
    log_level: Literal["DEBUG", "INFO", "WARN", "WARNING", "ERROR"] = "INFO"


class Curation(Setting):
    """A declaration of curated tables: common settings, and the tables."""

    kind: Literal["curation"]
    settings: CurationSettings = Field(default_factory=CurationSettings)
    tables: Annotated[list[CurationTable], Field(min_length=1)]
