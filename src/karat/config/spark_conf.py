"""What Karat asks of Spark's settings: some must have one value everywhere, and those that hold secrets are kept out of sight.

Hashes, order and periods follow from how Spark turns values into text and text into values. A session with another time zone
or without ANSI mode would give other hashes for the same rows, so these settings are the same in every session that reads or
writes tables, whoever built it.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from karat.config.document import Document, Place, dotted
from karat.config.problems import Problem, shown

REQUIRED: Final[Mapping[str, str]] = MappingProxyType(
    {
        # one clock: a timestamp means the same on every machine and in every answer
        "spark.sql.session.timeZone": "UTC",
        # TIMESTAMP in a declaration is an instant, not a reading of some wall clock
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        # Spark's own default overflows at year 9999 for other readers of the files
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # a value that does not fit fails or is refused; it does not become null or another number
        "spark.sql.ansi.enabled": "true",
        "spark.sql.storeAssignmentPolicy": "ANSI",
        # text that is no date is never read as the date an older Spark saw in it
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        # an expression of a declaration means the same everywhere: '\\n' is a line feed, "x" is a text, `x` is one column
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.parser.quotedRegexColumnNames": "false",
        # columns are found whatever the case they are written in
        "spark.sql.caseSensitive": "false",
        # decimals keep the scale that a product or a quotient has everywhere else
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    }
)
"""Settings on which hashes and the meaning of expressions depend, and the value each must have."""

REDACTION: Final = "spark.redaction.regex"
_HIDDEN_NAMES: Final = (
    r"(?i:secret|password|passwd|token|credential(?!s?[.]?provider)|access[.]?key|account[.]key|encryption[.]key|private[.]?key"
    r"|api[.]?key|[.]sas[.]|jaas|service[.]account[.]json)"
)
"""Names of settings whose values Spark must not show: its own default, and the keys of cloud storage, which that leaves in sight."""
_KEYS_WRITTEN_OUT: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\"private_key\"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAccountKey=|[?&]sig=[A-Za-z0-9%+/]{20}", re.IGNORECASE
)
"""Values that are keys whatever the setting is called: of Google, AWS and Azure, and any private key."""


def redaction(own: str | None, secrets: Collection[str]) -> str:
    """The pattern of settings that Spark redacts in its plans, pages and logs: ours, the named secrets, and the user's own."""
    names = [rf"\Q{name}\E" for name in sorted(secrets)]
    return "|".join([_HIDDEN_NAMES, *names, *([own] if own else [])])


def conf_problems(document: Document) -> Iterator[Problem]:
    """What is wrong with `spark.conf` of a project: keys written out, and settings whose value is not the user's to choose."""
    spark = document.value.get("spark")
    conf = spark.get("conf") if isinstance(spark, dict) else None
    for name, value in conf.items() if isinstance(conf, dict) else ():
        place: Place = ("spark", "conf", name)
        if isinstance(value, str) and _KEYS_WRITTEN_OUT.search(value):
            message, remedy = "a secret may not be written into a file of the project", "refer to it: {env: NAME} or {file: path}"
            yield Problem(document.file, document.line_of(place), dotted(place), message, remedy=remedy)
        needed = REQUIRED.get(name)
        if needed is not None and str(value).lower() != needed.lower():
            message = f"hashes and expressions depend on this setting: it is {needed} in every session"
            yield Problem(document.file, document.line_of(place), dotted(place), message, shown(value), "leave it out")
