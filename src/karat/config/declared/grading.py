"""The grade of a feed: whether its contract is good enough for a defensible history."""

from dataclasses import dataclass
from typing import Literal

from karat.config.declared.entity import Feed

Grade = Literal["DEFENSIBLE", "LIMITED_FALLBACK_ONLY", "REJECT_FOR_AUTHORITATIVE_BRONZE"]


@dataclass(frozen=True)
class Grading:
    """A feed's grade and the reason."""

    grade: Grade
    reason: str

    @property
    def is_rejected(self) -> bool:
        """Whether its rows are evidence only, without a timeline."""
        return self.grade == "REJECT_FOR_AUTHORITATIVE_BRONZE"


def graded(feed: Feed) -> Grading:
    """The grade of the feed. A guarantee that is left out counts as given if the feed's other settings provide it."""
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


def _either(promised: bool | None, declared: bool) -> bool:  # noqa: FBT001  (a setting and its default)
    return declared if promised is None else promised
