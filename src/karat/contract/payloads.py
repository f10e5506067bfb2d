"""Documents that are kept whole: attributes are taken out of them by paths, under a declared version."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.config.entity import Feed, FilesSource
from karat.contract.attempt import attempted, failed
from karat.contract.columns import DOCUMENT, IMPLIED_OP, IMPLIED_SEQUENCE, IMPLIED_TIME, KIND, ORIGINAL
from karat.contract.computing import computed
from karat.contract.expressions import Expression
from karat.contract.incoming import field_names, incoming
from karat.contract.wanted import failure_of, value_of
from karat.sources.documents import bare, is_json
from karat.sources.raw import BROKEN, CHANGE, COMMIT, COMMITTED_AT, FIELDS, FILE, GONE, LINE, PATH, ROW, is_typed, no_text

_XML = "__karat_xml"


def payload(raw: DataFrame, feed: Feed) -> DataFrame:
    """The document of every record; one that does not parse is broken. Grain: one row per record."""
    passed = [name for name in (FIELDS, ROW, PATH, FILE, ORIGINAL, CHANGE, COMMIT, COMMITTED_AT) if name in raw.columns]
    found = _with_document(raw, feed)
    text, not_computed = bare(F.col(value_of("document"))), F.col(failure_of("document"))
    xml = attempted(lambda: F.xpath_boolean(text, F.lit("boolean(/*)"))) if _speaks_xml(feed) else F.array(F.lit(True))
    tried = found.select(*passed, BROKEN, value_of("document"), failure_of("document"), xml.alias(_XML))
    says = F.col(FIELDS).isNotNull() | F.col(BROKEN).isNotNull()
    fault = (
        F.when(F.col(BROKEN).isNotNull() | ~says, F.col(BROKEN))
        .when(not_computed, F.lit(f"document: {feed.document} cannot be computed for this row"))
        .when(text.isNull() | (text == ""), F.lit("there is no document"))
        .when(F.lit(_speaks_json(feed)) & ~is_json(text), F.lit("a document that is not JSON"))
        .when(failed(F.col(_XML)), F.lit("a document that is not XML"))
    )
    checked = tried.select(*passed, value_of("document"), says.alias(KIND), fault.alias(BROKEN))
    return checked.select(
        *passed,
        BROKEN,
        F.when(F.col(KIND), F.lit("row")).otherwise(F.lit("ignored")).alias(KIND),
        F.when(F.col(KIND) & F.col(BROKEN).isNull(), text).alias(DOCUMENT),
        (F.when(F.col(CHANGE).isin(*GONE), F.lit("d")) if CHANGE in raw.columns else no_text()).alias(IMPLIED_OP),
        F.lit(None).cast("timestamp").alias(IMPLIED_TIME),
        no_text().alias(IMPLIED_SEQUENCE),
    )


def named_in(feed: Feed) -> tuple[str, ...]:
    """The incoming columns that a payload feed's SQL can speak of; the others stay inside their document."""
    texts = [text for text in (*feed.map.values(), feed.event_time, feed.sequence, feed.op, feed.delete_when, feed.document) if text]
    names = [names for text in texts if not text.strip().startswith(("$", "/")) for names in Expression("", text).references]
    return tuple(dict.fromkeys(names[-1] for names in names))


def _with_document(raw: DataFrame, feed: Feed) -> DataFrame:
    """The setting's column or expression, else the line or file, else the whole record as JSON."""
    if feed.document is None:
        whole: Column = F.coalesce(F.col(LINE), F.to_json(F.col(FIELDS)))
        return raw.select("*", whole.alias(value_of("document")), F.lit(False).alias(failure_of("document")))
    wanted = {"document": Expression("document", feed.document)}
    names = field_names(raw) if is_typed(raw) else named_in(feed)
    return computed(raw, wanted, incoming(raw, names), feed).rows


def _speaks_json(feed: Feed) -> bool:
    by_format = isinstance(feed.source, FilesSource) and feed.source.format == "json" and feed.document is None
    return by_format or any(text.strip().startswith("$") for text in _texts(feed))


def _speaks_xml(feed: Feed) -> bool:
    by_format = isinstance(feed.source, FilesSource) and feed.source.format == "xml" and feed.document is None
    return by_format or any(text.strip().startswith("/") for text in _texts(feed))


def _texts(feed: Feed) -> tuple[str, ...]:
    return (*feed.map.values(), *(text for text in (feed.event_time, feed.sequence, feed.op, feed.snapshot_of) if text))
