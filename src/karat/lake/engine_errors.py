"""Failures of the engines as one sentence a person can use: no Java, no plan, no stack."""

import re

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from karat.errors import ConfigError, ContractBreach, InternalError, KaratError, SourceUnavailable

_CODED = re.compile(r"(?:^|: )\[([A-Z][A-Z0-9_.]+)\] ([^\n]+)", re.MULTILINE)
_CAUSE = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)+[\w$]*(?:Exception|Error): (.+)$", re.MULTILINE)
_EMPTY_CODES = {"FAILED_EXECUTE_UDF", "TASK_WRITE_FAILED", "INTERNAL_ERROR"}
LONGEST = 500


def explained(failure: BaseException) -> KaratError:  # noqa: PLR0911  (one line per kind of failure)
    """The failure as one of ours; what is ours already stays as it is."""
    match failure:
        case KaratError():
            return failure
        case ParseException():
            return ConfigError(f"the SQL does not parse: {sentence(failure)}", remedy="mend the SQL file")
        case AnalysisException():
            return ConfigError(sentence(failure), remedy="mend the SQL, or the names in the declaration")
        case Py4JNetworkError() | ConnectionError():
            return SourceUnavailable("the connection to Spark was lost", remedy="look at the driver's memory and its log, then run again")
        case PySparkException() if _CODED.search(_text(failure)):
            remedy = "mend the data, or let the SQL allow for it (try_cast, try_divide); nothing was half-written"
            return ContractBreach(sentence(failure), remedy=remedy)
        case PySparkException() | Py4JJavaError():
            return SourceUnavailable(sentence(failure), remedy="mend what it names, then run again; nothing was half-written")
        case OSError():
            return SourceUnavailable(f"{type(failure).__name__}: {failure}", remedy="mend what it names, then run again")
        case _:
            remedy = "this is a fault of Karat: run again with --debug and report what it prints"
            return InternalError(f"{type(failure).__name__}: {failure}", remedy=remedy)


def sentence(failure: BaseException) -> str:
    """The one sentence that matters: the innermost coded message, else the innermost cause, else the first line."""
    text = _text(failure)
    text = text.split("\n\nJVM stacktrace:")[0]
    coded = [match for match in _CODED.finditer(text) if match[1] not in _EMPTY_CODES]
    if coded:
        where = re.search(r"\(?line (\d+),? pos (\d+)\)?", text)
        place = f" (line {where[1]}, position {where[2]})" if where and "line" not in coded[-1][2] else ""
        return _short(re.sub(r"\s*SQLSTATE: \w+.*$", "", coded[-1][2]) + place)
    causes = _CAUSE.findall(text)
    return _short(causes[-1] if causes else next((line for line in text.splitlines() if line.strip()), type(failure).__name__))


def _text(failure: BaseException) -> str:
    if isinstance(failure, Py4JJavaError):
        return str(failure.java_exception)
    return str(failure)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
