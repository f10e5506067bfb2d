"""Settings for few rows hold while anybody is inside, and are then what they were."""

from contextlib import ExitStack
from typing import Any

from karat.execute.pace import interpreted

SETTING = "spark.sql.codegen.wholeStage"


class Conf(dict[str, str]):
    """A session's settings, as far as they are asked."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        del self[key]


class Session:
    """What the settings belong to."""

    def __init__(self, **conf: str) -> None:
        self.conf = Conf(conf)


def test_the_last_to_leave_takes_the_settings_back_whoever_came_first() -> None:
    session: Any = Session(**{SETTING: "true"})
    first, second = ExitStack(), ExitStack()
    first.enter_context(interpreted(session))
    second.enter_context(interpreted(session))
    first.close()
    assert session.conf[SETTING] == "false", "the other is inside still"
    second.close()
    assert session.conf == {SETTING: "true"}, "and what was not set is not set again"


def test_many_rows_are_computed_as_the_session_has_it() -> None:
    session: Any = Session()
    with interpreted(session, few=False):
        assert session.conf == {}
