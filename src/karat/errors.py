"""Every way Karat can fail: one root, few kinds, each with a code, its evidence and a way out.

`retryable` is a fact of the class, so nobody ever parses a message to decide what to do next.
"""

from typing import ClassVar


class KaratError(Exception):
    """The root: a sentence for people, evidence for machines, a remedy for both."""

    code: ClassVar[str] = "KARAT"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, remedy: str = "", summary: str | None = None, **evidence: object) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.summary = message if summary is None else summary
        """The message without the engine's own text, which may quote values of the data: what mails and webhooks carry."""
        self.evidence = evidence

    def __str__(self) -> str:
        """One line with the code first; the remedy, where there is one, on a line of its own."""
        return self._said(self.message)

    @property
    def notice(self) -> str:
        """The same with the summary in the message's place: what may leave the machine."""
        return self._said(self.summary)

    def _said(self, sentence: str) -> str:
        head = f"[{self.code}] {sentence}"
        return f"{head}\n  remedy: {self.remedy}" if self.remedy else head


class ConfigError(KaratError):
    """What the user wrote cannot be understood or cannot work."""

    code = "CONFIG"


class ContractBreach(KaratError):
    """Data broke the rules it was promised under."""

    code = "CONTRACT_BREACH"


class SourceUnavailable(KaratError):
    """Something outside could not be reached or read."""

    code = "SOURCE_UNAVAILABLE"
    retryable = True


class StateConflict(KaratError):
    """Somebody else wrote what we were about to write; the input must be computed again."""

    code = "STATE_CONFLICT"
    retryable = True


class NoAnswer(KaratError):
    """The question is well put, but nothing on record answers it."""

    code = "NO_ANSWER"


class SetupError(KaratError):
    """The machine lacks what a run needs: Java, jars, a package."""

    code = "SETUP"


class InternalError(KaratError):
    """A fault of Karat itself; never the user's."""

    code = "INTERNAL"
