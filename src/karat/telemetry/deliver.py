"""One way out each: mail, webhook, command.

A failure is reported by kind and number only: the text of a library may repeat an address or a header, and those may be secrets.
"""

import http.client
import os
import signal
import smtplib
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from karat.config.secrets import reveal
from karat.config.setting import Secret
from karat.config.settings import EmailNotice, WebhookNotice
from karat.errors import ConfigError
from karat.telemetry.notice import Notice

_NETWORK_SECONDS: Final = 10
_COMMAND_SECONDS: Final = 60


class Undelivered(Exception):
    """A notice that did not arrive, and why, without secrets."""


def send_mail(email: EmailNotice, notice: Notice, project: Path) -> None:
    """A mail to everybody listed, encrypted as asked; certificates are always verified."""
    with _without_secrets(f"email by {email.host}:{email.port}"):
        password = reveal(email.password, project) if email.password else ""
        with _mail_server(email) as server:
            if email.user:
                server.login(email.user, password)
            server.send_message(_mail(email, notice))


def post(webhook: WebhookNotice, notice: Notice, project: Path) -> None:
    """The notice as JSON, by POST. Redirects are not followed: they would carry the headers, and their secrets, elsewhere."""
    place = "webhook"
    with _without_secrets(place):
        url = _plain(webhook.url, project)
        if urlsplit(url).scheme not in {"http", "https"}:
            raise _undelivered(place, "its address is neither http nor https")
        headers = {"Content-Type": "application/json", "User-Agent": "karat"}
        headers |= {name: _plain(value, project) for name, value in webhook.headers.items()}
        request = urllib.request.Request(url, data=notice.as_json(), headers=headers, method="POST")  # noqa: S310 - checked above
        urllib.request.build_opener(_NoRedirect).open(request, timeout=_NETWORK_SECONDS).close()


def run_command(command: list[str], notice: Notice, project: Path, patience: float = _COMMAND_SECONDS) -> None:
    """The notice as JSON on the command's standard input; what it prints is not ours to show."""
    place = f"command {command[0]}"
    with _without_secrets(place):
        process = subprocess.Popen(  # noqa: S603 - the user's own command, and no shell reads it
            command,
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    with process:
        try:
            process.communicate(notice.as_json(), timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with its children, or they would outlive it
            raise _undelivered(place, f"not done after {patience:g} s") from None
    if process.returncode != 0:
        raise _undelivered(place, f"exit code {process.returncode}")


@contextmanager
def _without_secrets(place: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as unset:
        raise _undelivered(place, unset.message) from None
    except smtplib.SMTPResponseException as refused:
        raise _undelivered(place, f"{type(refused).__name__}, answer {refused.smtp_code}") from None
    except urllib.error.HTTPError as refused:
        refused.close()
        raise _undelivered(place, f"HTTP {refused.code}") from None
    except urllib.error.URLError as failed:
        raise _undelivered(place, type(failed.reason).__name__) from None
    except (OSError, ValueError, smtplib.SMTPException, http.client.HTTPException) as failed:
        raise _undelivered(place, type(failed).__name__) from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        """No second request."""


def _mail_server(email: EmailNotice) -> smtplib.SMTP:
    if email.tls == "tls":
        return smtplib.SMTP_SSL(email.host, email.port, timeout=_NETWORK_SECONDS, context=ssl.create_default_context())
    server = smtplib.SMTP(email.host, email.port, timeout=_NETWORK_SECONDS)
    if email.tls == "starttls":
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


def _mail(email: EmailNotice, notice: Notice) -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"] = f"[karat] {notice.headline}"
    mail["From"] = email.sender
    mail["To"] = ", ".join(email.to)
    mail["Date"] = format_datetime(notice.finished_at)
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(notice.as_text())
    return mail


def _plain(value: str | Secret, project: Path) -> str:
    return value if isinstance(value, str) else reveal(value, project)


def _undelivered(place: str, reason: str) -> Undelivered:
    return Undelivered(f"{place}: {reason}")
