"""A failure of the engine is one sentence for the terminal, and a summary without any value of the data for everybody else."""

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import AnalysisException, ArithmeticException, ParseException, PySparkException

from karat.errors import ConfigError, ContractBreach, InternalError, KaratError, SourceUnavailable, StateConflict
from karat.lake.engine_errors import explained

VALUE = "4711-0815"
CAST = (
    f'Job aborted due to stage failure: [CAST_INVALID_INPUT] The value \'{VALUE}\' of the type "STRING" cannot be cast to "INT" '
    "because it is malformed. SQLSTATE: 22018\n== SQL (line 1, position 8) ==\nselect"
)
JAVA = (
    f"org.apache.spark.SparkException: Job aborted: {VALUE}\n\tat org.apache.spark.A\n"
    f"Caused by: java.io.IOException: No space left for {VALUE}\n"
)


@pytest.mark.parametrize(
    ("failure", "kind", "condition"),
    [
        (ArithmeticException(CAST), ContractBreach, "CAST_INVALID_INPUT"),
        (PySparkException(JAVA), SourceUnavailable, "IOException"),
        (
            AnalysisException(f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `{VALUE}` cannot be resolved."),
            ConfigError,
            "UNRESOLVED_COLUMN",
        ),
        (ParseException(f"[PARSE_SYNTAX_ERROR] Syntax error at or near '{VALUE}'."), ConfigError, "PARSE_SYNTAX_ERROR"),
        (FileNotFoundError(2, "No such file", VALUE), SourceUnavailable, "FileNotFoundError"),
        (ValueError(VALUE), InternalError, "ValueError"),
    ],
)
def test_the_sentence_may_quote_a_value_and_the_summary_never_does(failure: Exception, kind: type[KaratError], condition: str) -> None:
    error = explained(failure)
    assert type(error) is kind
    assert VALUE in str(error)
    assert VALUE not in error.notice
    assert condition in error.notice


@pytest.mark.parametrize("failure", [ArithmeticException(CAST), PySparkException(JAVA), OSError("disk")])
def test_it_is_not_said_that_nothing_was_written(failure: Exception) -> None:
    remedy = explained(failure).remedy
    assert "half-written" not in remedy
    assert "what was committed before stays" in remedy


def test_what_is_ours_stays_as_it_is_and_a_lost_connection_names_neither() -> None:
    conflict = StateConflict("another run")
    assert explained(conflict) is conflict
    assert conflict.notice == str(conflict)
    assert explained(Py4JNetworkError(VALUE)).message == "the connection to Spark was lost"
