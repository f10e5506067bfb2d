"""Whatever fails in a command is a sentence and an exit code."""

import json

import pytest
import typer
from pyspark.errors import AnalysisException

from karat.cli.answers import Output, answering
from karat.errors import ConfigError, SetupError, SourceUnavailable, StateConflict
from karat.runner.interruption import RunInterrupted


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (ConfigError("no such entity", remedy="name one"), 2, "[CONFIG] no such entity\n  remedy: name one"),
        (SetupError("no Java"), 2, "[SETUP] no Java"),
        (StateConflict("another run came first", remedy="wait for its end"), 1, "another run came first\n  remedy: wait for its end"),
        (SourceUnavailable("no disk"), 1, "no disk"),
        (
            AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] No table `x`. SQLSTATE: 42P01"),
            2,
            "No table `x`.",
        ),
        (ValueError("odd"), 1, "[INTERNAL] ValueError: odd"),
        (RunInterrupted("SIGTERM"), 143, "interrupted; what was committed stays"),
        (RunInterrupted("SIGINT"), 130, "interrupted"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_a_failure_is_a_sentence_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], failure: BaseException, code: int, words: str
) -> None:
    with pytest.raises(typer.Exit) as ended, answering(Output()):
        raise failure
    printed = capsys.readouterr()
    assert (ended.value.exit_code, printed.out) == (code, "")
    assert words in printed.err
    assert "Traceback" not in printed.err


def test_a_machine_gets_the_error_as_json_and_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), answering(Output(json=True, debug=True)):
        raise AnalysisException("[PARSE_SYNTAX_ERROR] odd")  # noqa: EM101, TRY003  (an engine's)
    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"]["code"] == "CONFIG"
    assert "Traceback" in printed.err


def test_a_command_that_chose_its_exit_code_keeps_it() -> None:
    with pytest.raises(typer.Exit) as ended, answering(Output()):
        raise typer.Exit(1)
    assert ended.value.exit_code == 1
