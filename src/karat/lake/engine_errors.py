"""Failures of the engines as one sentence a person can use: no Java, no plan, no stack.

The sentence may quote values of the data; it goes to the terminal and to the run's log. The summary that goes with it names the kind of
failure only, and is what mails and webhooks carry.
"""

import re

from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from karat.errors import ConfigError, ContractBreach, InternalError, KaratError, SourceUnavailable

_CODED = re.compile(r"(?:^|: )\[([A-Z][A-Z0-9_.]+)\] ([^\n]+)", re.MULTILINE)
_CAUSE = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)+([\w$]*(?:Exception|Error)): (.+)$", re.MULTILINE)
_EMPTY_CODES = {"FAILED_EXECUTE_UDF", "TASK_WRITE_FAILED", "INTERNAL_ERROR"}
_STAYS = "what was committed before stays, and the next run goes on from there"
LONGEST = 500


def explained(failure: BaseException) -> KaratError:  # noqa: PLR0911  (one line per kind of failure)
    """The failure as one of Karat's own errors; one that is so already stays as it is."""
    if isinstance(failure, KaratError):
        return failure
    kind = condition(failure)
    match failure:
        case ParseException():
            summary = f"the SQL does not parse ({kind})"
            return ConfigError(f"the SQL does not parse: {sentence(failure)}", remedy="mend the SQL file", summary=summary)
        case AnalysisException():
            summary = f"the SQL or the declaration does not fit the tables ({kind})"
            return ConfigError(sentence(failure), remedy="mend the SQL, or the names in the declaration", summary=summary)
        case Py4JNetworkError() | ConnectionError():
            return SourceUnavailable("the connection to Spark was lost", remedy="look at the driver's memory and its log, then run again")
        case PySparkException() if _CODED.search(_text(failure)):
            remedy = f"mend the data, or let the SQL allow for it (try_cast, try_divide); {_STAYS}"
            return ContractBreach(sentence(failure), remedy=remedy, summary=f"the engine refused a value or an operation ({kind})")
        case PySparkException() | Py4JJavaError():
            remedy = f"mend what it names, then run again; {_STAYS}"
            return SourceUnavailable(sentence(failure), remedy=remedy, summary=f"the engine failed ({kind})")
        case OSError():
            remedy = f"mend what it names, then run again; {_STAYS}"
            return SourceUnavailable(f"{kind}: {failure}", remedy=remedy, summary=f"a file or a connection failed ({kind})")
        case _:
            remedy = "this is a fault of Karat: run again with --debug and report what it prints"
            return InternalError(f"{kind}: {failure}", remedy=remedy, summary=f"a fault of Karat ({kind})")


def sentence(failure: BaseException) -> str:
    """The one sentence that matters: the innermost coded message, else the innermost cause, else the first line."""
    text = _text(failure)
    coded = _coded(text)
    if coded:
        where = re.search(r"\(?line (\d+),? pos (\d+)\)?", text)
        place = f" (line {where[1]}, position {where[2]})" if where and "line" not in coded[-1][2] else ""
        return _short(re.sub(r"\s*SQLSTATE: \w+.*$", "", coded[-1][2]) + place)
    causes = _CAUSE.findall(text)
    return _short(causes[-1][1] if causes else next((line for line in text.splitlines() if line.strip()), type(failure).__name__))


def condition(failure: BaseException) -> str:
    """The name of what went wrong, without any of the data: the engine's error condition, else the class of the innermost cause."""
    text = _text(failure)
    coded = _coded(text)
    causes = _CAUSE.findall(text)
    return str(coded[-1][1]) if coded else causes[-1][0] if causes else type(failure).__name__


def _coded(text: str) -> list[re.Match[str]]:
    return [match for match in _CODED.finditer(text) if match[1] not in _EMPTY_CODES]


def _text(failure: BaseException) -> str:
    text = str(failure.java_exception) if isinstance(failure, Py4JJavaError) else str(failure)
    return text.split("\n\nJVM stacktrace:")[0]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
