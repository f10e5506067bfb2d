"""The grade of a source, by what it can substantiate: whether its statements may carry a defensible history."""

from dataclasses import dataclass
from typing import Literal

from karat.config.entity import Feed

Grade = Literal["DEFENSIBLE", "LIMITED_FALLBACK_ONLY", "REJECT_FOR_AUTHORITATIVE_BRONZE"]


@dataclass(frozen=True)
class Grading:
    """A feed's grade and why."""

    grade: Grade
    reason: str

    @property
    def is_rejected(self) -> bool:
        """Whether only evidence is kept, and no timeline made of it."""
        return self.grade == "REJECT_FOR_AUTHORITATIVE_BRONZE"


def graded(feed: Feed) -> Grading:
    """What the feed's contract is good for. A promise that is left out counts as given where the feed declares the means."""
    contract = feed.contract
    has_time = _either(contract.has_source_time, feed.event_time is not None or feed.is_change_stream)
    has_load_type = _either(contract.has_explicit_load_type, feed.load_type is not None or feed.is_change_stream)
    has_deletes = _either(contract.has_delete_semantics, True)
    if contract.has_stable_bk is False:
        return Grading("REJECT_FOR_AUTHORITATIVE_BRONZE", "no stable business key: rows are kept as evidence, no timeline is made of them")
    if not has_time:
        return Grading("LIMITED_FALLBACK_ONLY", "no reliable source time")
    if not has_load_type:
        return Grading("LIMITED_FALLBACK_ONLY", "no explicit load type: what a row leaves out may be unchanged, empty or gone")
    if not has_deletes:
        return Grading("LIMITED_FALLBACK_ONLY", "no explicit delete semantics")
    return Grading("DEFENSIBLE", "meets the minimum temporal evidentiary standard")


def _either(promised: bool | None, declared: bool) -> bool:  # noqa: FBT001  (two answers to one question)
    return declared if promised is None else promised
