"""A session of a stage has every setting on which hashes depend, or the run does not start."""

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from karat.config.spark_conf import REQUIRED
from karat.errors import SetupError
from karat.lake.session import with_required_settings

ANSI, ZONE = "spark.sql.ansi.enabled", "spark.sql.session.timeZone"


class Conf(dict[str, str]):
    """A session's settings, some of which the platform does not let anybody change."""

    locked: tuple[str, ...] = ()

    def set(self, name: str, value: str) -> None:
        if name in self.locked:
            message = f"[CANNOT_MODIFY_CONFIG] {name}"
            raise AnalysisException(message)
        self[name] = value


class Session:
    """What the settings belong to."""

    def __init__(self, *locked: str, **conf: str) -> None:
        self.conf = Conf(conf)
        self.conf.locked = locked


def test_every_setting_is_made() -> None:
    session: Any = Session(**{ANSI: "false", ZONE: "America/New_York"})
    assert with_required_settings(session) is session
    assert session.conf == dict(REQUIRED)


def test_what_cannot_be_changed_must_be_right_already() -> None:
    right: Any = Session(ANSI, **{ANSI: "TRUE"})
    assert with_required_settings(right).conf[ANSI] == "TRUE"
    wrong: Any = Session(ANSI, ZONE, **{ANSI: "false"})
    with pytest.raises(SetupError) as refused:
        with_required_settings(wrong)
    assert f"{ANSI} is false and must be true" in refused.value.message
    assert f"{ZONE} is None and must be UTC" in refused.value.message
