"""Notices against real receivers on loopback: an SMTP server, an HTTP server, a program."""

import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from karat.config.setting import Secret, SecretFromEnv
from karat.config.settings import EmailNotice, NotifySettings, WebhookNotice
from karat.errors import SourceUnavailable
from karat.telemetry.deliver import Undelivered, run_command
from karat.telemetry.events import RunFinished, RunStarted, StageFinished
from karat.telemetry.notice import FailedStage, Notice
from karat.telemetry.notify import Notifier
from tests.support.services import free_port

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = "hush-hush"
VALUE = "4711-0815"
"""A value of the data that an engine quotes in its error."""

Request = tuple[str, dict[str, str], Any]
Received = tuple[str, list[Request]]


class Mailbox:
    """Takes every mail, and remembers who logged in and whether the line was encrypted."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.encrypted = False
        self.logins: list[tuple[bytes, bytes]] = []

    async def handle_DATA(self, _server: object, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content, _class=EmailMessage, policy=policy.default))
        self.recipients += envelope.rcpt_tos
        self.encrypted = session.ssl is not None
        return "250 taken"

    def authenticate(self, _server: object, _session: object, _envelope: object, _mechanism: str, login: object) -> AuthResult:
        assert isinstance(login, LoginPassword)
        self.logins.append((login.login, login.password))
        return AuthResult(success=login.password == SECRET.encode(), handled=False)


class Receiver(BaseHTTPRequestHandler):
    """Keeps the last request; answers what the path asks for."""

    seen: list[Request]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, dict(self.headers), json.loads(body)))
        self.send_response(int(self.path.rpartition("/")[2]))
        self.send_header("Location", "/elsewhere/200")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def smtp_server(mailbox: Mailbox, **options: Any) -> Iterator[int]:  # noqa: ANN401 - the controller's own options
    port = free_port()
    controller = Controller(
        mailbox, hostname="127.0.0.1", port=port, authenticator=mailbox.authenticate, auth_require_tls=False, ready_timeout=30, **options
    )
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


@pytest.fixture
def receiver() -> Iterator[Received]:
    seen: list[Request] = []
    server = HTTPServer(("127.0.0.1", 0), type("Bound", (Receiver,), {"seen": seen}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's certificate for 127.0.0.1 that this process trusts."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *name, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - every word of it stands above
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> SecretFromEnv:
    monkeypatch.setenv("NOTIFY_SECRET", SECRET)
    return SecretFromEnv(env="NOTIFY_SECRET")


def run_ends(settings: NotifySettings, project: Path, *, ok: bool = False) -> None:
    notifier = Notifier(settings, project, "bank")
    notifier.emit(RunStarted("r1", AT, "bank", ("bronze.a",), "abc"))
    if ok:
        notifier.emit(StageFinished("r1", AT, "bronze.a", "succeeded", 2.0))
    else:
        told = {"error": f"[CONTRACT] {VALUE} ist größer", "summary": "[CONTRACT] größer\n  remedy: kleiner"}
        notifier.emit(StageFinished("r1", AT, "bronze.a", "failed", 2.0, **told))
    notifier.emit(RunFinished("r1", AT, ok=ok, seconds=2.5, counts={"succeeded": 3, "failed": int(not ok)}))
    notifier.close()


def mail_to(
    port: int, tls: Literal["none", "starttls", "tls"] = "none", user: str | None = None, password: Secret | None = None
) -> NotifySettings:
    everybody = ["ann@x.org", "bea@x.org"]
    email = EmailNotice(host="127.0.0.1", port=port, sender="karat@x.org", to=everybody, tls=tls, user=user, password=password)
    return NotifySettings(email=email)


def test_a_mail_says_what_failed_and_why(tmp_path: Path) -> None:
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        run_ends(mail_to(port), tmp_path)
    (mail,) = mailbox.mails
    assert (mail["Subject"], mail["To"], mailbox.recipients) == (
        "[karat] bank: run r1 failed",
        "ann@x.org, bea@x.org",
        ["ann@x.org", "bea@x.org"],
    )
    assert mail.get_content().replace("\r\n", "\n") == (
        "bank: run r1 failed after 2.5 s.\nTables: 3 succeeded, 1 failed.\n\nFailed:\n"
        "\nbronze.a\n    [CONTRACT] größer\n      remedy: kleiner\n"
        "\nThe whole text: karat progress r1, or .karat/logs/r1.jsonl in the project.\n"
    )
    assert (mailbox.logins, mailbox.encrypted) == ([], False)


def test_a_mail_is_encrypted_by_starttls_and_signed_in(tmp_path: Path, certificate: ssl.SSLContext, secret: SecretFromEnv) -> None:
    mailbox = Mailbox()
    with smtp_server(mailbox, tls_context=certificate, require_starttls=True) as port:
        run_ends(mail_to(port, "starttls", user="karat", password=secret), tmp_path)
    assert (len(mailbox.mails), mailbox.encrypted, mailbox.logins) == (1, True, [(b"karat", SECRET.encode())])


def test_a_mail_is_encrypted_from_the_first_byte(tmp_path: Path, certificate: ssl.SSLContext) -> None:
    mailbox = Mailbox()
    with smtp_server(mailbox, ssl_context=certificate) as port:
        run_ends(mail_to(port, "tls"), tmp_path)
    assert len(mailbox.mails) == 1


def test_a_certificate_nobody_vouches_for_is_refused(tmp_path: Path, certificate: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    mailbox = Mailbox()
    with smtp_server(mailbox, tls_context=certificate) as port, pytest.raises(SourceUnavailable, match="SSLCertVerificationError"):
        run_ends(mail_to(port, "starttls"), tmp_path)
    assert mailbox.mails == []


def test_a_refused_login_is_told_without_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: SecretFromEnv) -> None:
    monkeypatch.setenv("NOTIFY_SECRET", "wrong-" + SECRET)
    with smtp_server(Mailbox()) as port, pytest.raises(SourceUnavailable, match="answer 535") as refused:
        run_ends(mail_to(port, user="karat", password=secret), tmp_path)
    assert SECRET not in f"{refused.value!r} {refused.value} {refused.value.__context__!r}"


def test_a_webhook_gets_json_and_headers_that_are_secrets(tmp_path: Path, receiver: Received, secret: SecretFromEnv) -> None:
    url, seen = receiver
    headers: dict[str, str | Secret] = {"X-Team": "data", "Authorization": secret}
    run_ends(NotifySettings(webhook=WebhookNotice(url=f"{url}/hook/200", headers=headers)), tmp_path)
    ((path, sent, body),) = seen
    assert (path, sent["X-Team"], sent["Authorization"], sent["Content-Type"]) == ("/hook/200", "data", SECRET, "application/json")
    assert body.pop("text").startswith("bank: run r1 failed after 2.5 s.")
    assert body == {
        "project": "bank",
        "run_id": "r1",
        "ok": False,
        "finished_at": "2026-01-02T03:04:05+00:00",
        "seconds": 2.5,
        "counts": {"succeeded": 3, "failed": 1},
        "failed": [{"stage": "bronze.a", "error": "[CONTRACT] größer\n  remedy: kleiner"}],
        "interrupted": None,
    }


@pytest.mark.parametrize(("answer", "told"), [("500", "HTTP 500"), ("302", "HTTP 302")])
def test_a_webhook_that_does_not_take_it_is_told_and_never_followed(answer: str, told: str, tmp_path: Path, receiver: Received) -> None:
    url, seen = receiver
    with pytest.raises(SourceUnavailable, match=told):
        run_ends(NotifySettings(webhook=WebhookNotice(url=f"{url}/{answer}")), tmp_path)
    assert len(seen) == 1


@pytest.mark.parametrize(
    "address", [f"file:///{SECRET}", f"http://127.0.0.1:1/{SECRET}", f"http://127.0.0.1:1/ {SECRET}\n", f"http://[{SECRET}"]
)
def test_an_address_that_is_a_secret_shows_in_no_message(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: SecretFromEnv
) -> None:
    monkeypatch.setenv("NOTIFY_SECRET", address)
    with pytest.raises(SourceUnavailable, match="webhook: ") as refused:
        run_ends(NotifySettings(webhook=WebhookNotice(url=secret)), tmp_path)
    assert SECRET not in f"{refused.value!r} {refused.value}"


def test_a_secret_that_is_not_set_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: SecretFromEnv) -> None:
    monkeypatch.delenv("NOTIFY_SECRET")
    with pytest.raises(SourceUnavailable, match="NOTIFY_SECRET"):
        run_ends(NotifySettings(webhook=WebhookNotice(url=secret)), tmp_path)


def test_a_command_reads_the_notice_from_its_input_in_the_project(tmp_path: Path) -> None:
    program = "import sys, pathlib; pathlib.Path('told.json').write_text(sys.stdin.read())"
    run_ends(NotifySettings(command=[sys.executable, "-c", program]), tmp_path, ok=True)
    told = json.loads((tmp_path / "told.json").read_text())
    assert (told["ok"], told["run_id"], told["failed"]) == (True, "r1", [])


@pytest.mark.parametrize(("command", "told"), [(["false"], "exit code 1"), (["./nowhere"], "FileNotFoundError")])
def test_a_command_that_fails_is_told(command: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=told):
        run_ends(NotifySettings(command=command), tmp_path)


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    notice = Notice.of("bank", RunFinished("r1", AT, ok=True, seconds=1.0, counts={}), ())
    began = time.monotonic()
    with pytest.raises(Undelivered, match=r"not done after 0\.3 s"):
        run_command(["sh", "-c", "sleep 30 & echo $! > child; wait"], notice, tmp_path, patience=0.3)
    assert time.monotonic() - began < 10
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    deadline = time.monotonic() + 5
    while child.exists() and " Z " not in child.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not child.exists() or " Z " in child.read_text()


def test_an_error_without_a_summary_is_not_repeated_outside_the_machine() -> None:
    ended = StageFinished("r1", AT, "bronze.a", "failed", 2.0, error=f"the value '{VALUE}' cannot be cast")
    run = RunFinished("r1", AT, ok=False, seconds=1.0, counts={"failed": 1})
    notice = Notice.of("bank", run, (FailedStage.of(ended),))
    assert VALUE not in notice.as_text() + notice.as_json().decode()
    assert ".karat/logs/r1.jsonl" in notice.as_text()


def test_a_run_that_a_signal_ended_is_not_called_failed() -> None:
    notice = Notice.of("bank", RunFinished("r1", AT, ok=False, seconds=1.0, counts={}, interrupted="SIGTERM"), ())
    assert notice.headline == "bank: run r1 was interrupted by SIGTERM"


def test_who_asked_for_failures_only_hears_no_success(tmp_path: Path, receiver: Received) -> None:
    url, seen = receiver
    settings = NotifySettings(webhook=WebhookNotice(url=f"{url}/200", when="failure"))
    run_ends(settings, tmp_path, ok=True)
    assert seen == []
    run_ends(settings, tmp_path)
    assert len(seen) == 1


def test_one_who_cannot_be_told_keeps_nobody_else_from_hearing(tmp_path: Path) -> None:
    settings = NotifySettings(webhook=WebhookNotice(url="http://127.0.0.1:1/"), command=["touch", "told"])
    with pytest.raises(SourceUnavailable, match="ConnectionRefusedError"):
        run_ends(settings, tmp_path)
    assert (tmp_path / "told").exists()


def test_nobody_to_tell_is_no_trouble(tmp_path: Path) -> None:
    run_ends(NotifySettings(), tmp_path)
