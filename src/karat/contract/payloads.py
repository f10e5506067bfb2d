"""Documents that are kept whole: attributes are taken out of them by paths, under a declared version."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.config.declared.entity import Feed, FilesSource
from karat.contract.attempt import attempted, failed
from karat.contract.columns import DOCUMENT, IMPLIED_OP, IMPLIED_SEQUENCE, IMPLIED_TIME, KIND
from karat.contract.computing import computed
from karat.contract.expressions import Expression
from karat.contract.field_paths import ROOT
from karat.contract.incoming import incoming, with_declared_names
from karat.contract.wanted import failure_of, value_of
from karat.sources.documents import bare, is_json, with_objects
from karat.sources.raw import BROKEN, CHANGE, COMMIT, COMMITTED_AT, FIELDS, FILE, GONE, LINE, PATH, ROW, is_typed, no_text

_XML = "__karat_xml"
_TEXT = "__karat_document_text"


def payload(raw: DataFrame, feed: Feed) -> DataFrame:
    """The document of every record, with ROOT; one that does not parse is broken. Grain: one row per record."""
    passed = [name for name in (LINE, FIELDS, ROW, PATH, FILE, CHANGE, COMMIT, COMMITTED_AT) if name in raw.columns]
    found = _with_document(raw, feed)
    not_computed = F.col(failure_of("document")) if failure_of("document") in found.columns else F.lit(False)
    text = F.col(_TEXT)
    xml = attempted(lambda: F.xpath_boolean(text, F.lit("boolean(/*)"))) if _speaks_xml(feed) else F.array(F.lit(True))
    bared = found.select(*passed, BROKEN, ROOT, bare(F.col(value_of("document"))).alias(_TEXT), not_computed.alias(failure_of("document")))
    tried = bared.select(*passed, BROKEN, ROOT, _TEXT, failure_of("document"), xml.alias(_XML))
    says = F.col(FIELDS).isNotNull() | F.col(BROKEN).isNotNull()
    fault = (
        F.when(F.col(BROKEN).isNotNull() | ~says, F.col(BROKEN))
        .when(F.col(failure_of("document")), F.lit(f"document: {feed.document} cannot be computed for this row"))
        .when(text.isNull() | (text == ""), F.lit("there is no document"))
        .when(_is_no_json(text, feed), F.lit("a document that is not JSON"))
        .when(failed(F.col(_XML)), F.lit("a document that is not XML"))
    )
    checked = tried.select(*passed, ROOT, _TEXT, says.alias(KIND), fault.alias(BROKEN))
    return checked.select(
        *passed,
        ROOT,
        BROKEN,
        F.when(F.col(KIND), F.lit("row")).otherwise(F.lit("ignored")).alias(KIND),
        F.when(F.col(KIND) & F.col(BROKEN).isNull(), text).alias(DOCUMENT),
        (F.when(F.col(CHANGE).isin(*GONE), F.lit("d")) if CHANGE in raw.columns else no_text()).alias(IMPLIED_OP),
        F.lit(None).cast("timestamp").alias(IMPLIED_TIME),
        no_text().alias(IMPLIED_SEQUENCE),
    )


def _with_document(raw: DataFrame, feed: Feed) -> DataFrame:
    """The setting's column or expression, else the line or file, else the whole record as JSON; and the fields of that document."""
    if feed.document is None:
        whole: Column = F.coalesce(F.col(LINE), F.to_json(F.col(FIELDS)))
        found = raw.select("*", whole.alias(value_of("document")))
        if _is_line(feed):  # the reader has parsed it
            return found.withColumn(ROOT, F.col(FIELDS))
    else:
        wanted = {"document": Expression("document", feed.document)}
        columns = incoming(raw, wanted)
        named = raw if is_typed(raw) else with_declared_names(raw, columns)
        found = computed(named, wanted, columns, feed).rows
    if not _speaks_json(feed):
        return found.withColumn(ROOT, F.lit(None).cast("map<string,string>"))
    return with_objects(found, {ROOT: bare(F.col(value_of("document")))})


def _is_no_json(text: Column, feed: Feed) -> Column:
    if not _speaks_json(feed) or _is_line(feed):
        return F.lit(False)
    return F.col(ROOT).isNull() & ~(text.startswith("[") & is_json(text))


def _is_line(feed: Feed) -> bool:
    """Whether the document is the line of a JSON file, which the reader has held to be one object."""
    return isinstance(feed.source, FilesSource) and feed.source.format == "json" and feed.document is None


def _speaks_json(feed: Feed) -> bool:
    return _is_line(feed) or any(text.strip().startswith("$") for text in _texts(feed))


def _speaks_xml(feed: Feed) -> bool:
    by_format = isinstance(feed.source, FilesSource) and feed.source.format == "xml" and feed.document is None
    return by_format or any(text.strip().startswith("/") for text in _texts(feed))


def _texts(feed: Feed) -> tuple[str, ...]:
    return (*feed.map.values(), *(text for text in (feed.event_time, feed.sequence, feed.op, feed.snapshot_of) if text))
