"""Notices that a run ended: by mail, by webhook, by a command."""

from collections.abc import Callable
from pathlib import Path

from karat.config.settings import NotifySettings, When
from karat.errors import SourceUnavailable
from karat.telemetry.deliver import Undelivered, post, run_command, send_mail
from karat.telemetry.events import Event, RunFinished, RunStarted, StageFinished
from karat.telemetry.notice import FailedStage, Notice


class Notifier:
    """Waits for the end of a run and tells everybody in the settings. `name` is the project's; secrets are looked up when used."""

    def __init__(self, settings: NotifySettings, project: Path, name: str) -> None:
        self._settings = settings
        self._project = project
        self._name = name
        self._failed: list[FailedStage] = []

    def emit(self, event: Event) -> None:
        """Remember what fails; at the end, send the notice. A receiver that cannot be reached does not keep the others from theirs."""
        match event:
            case RunStarted():
                self._failed = []
            case StageFinished(status="failed"):
                self._failed.append(FailedStage.of(event))
            case RunFinished():
                self._send(Notice.of(self._name, event, tuple(self._failed)))
            case _:
                pass

    def close(self) -> None:
        """Nothing is kept open."""

    def _send(self, notice: Notice) -> None:
        troubles: list[str] = []
        for deliver in self._deliveries(notice):
            try:
                deliver()
            except Undelivered as trouble:
                troubles.append(str(trouble))
        if troubles:
            message = f"the end of run {notice.run_id} could not be sent: {'; '.join(troubles)}"
            raise SourceUnavailable(message, remedy="check notify in karat.yml")

    def _deliveries(self, notice: Notice) -> list[Callable[[], None]]:
        settings, project = self._settings, self._project
        deliveries: list[Callable[[], None]] = []
        if (email := settings.email) and _wanted(email.when, notice):
            deliveries.append(lambda: send_mail(email, notice, project))
        if (webhook := settings.webhook) and _wanted(webhook.when, notice):
            deliveries.append(lambda: post(webhook, notice, project))
        if command := settings.command:
            deliveries.append(lambda: run_command(command, notice, project))
        return deliveries


def _wanted(when: When, notice: Notice) -> bool:
    return when == "always" or not notice.ok
