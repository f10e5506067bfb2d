"""Reference: the semantics of timelines and beliefs in plain Python over rows; answers for one key, and the oracle of the tests."""

from karat.config.rules import Authority, Group, Rule, in_force
from karat.reference.belief import belief_history, believed, conflicts
from karat.reference.canonical import attr_hash
from karat.reference.inheritance import reconstruct
from karat.reference.reasons import Explanation, Loser, Reason, explained
from karat.reference.restatements import restatements
from karat.reference.schema import EntitySchema, Row
from karat.reference.statements import Statement, order_key
from karat.reference.timeline import timeline

__all__ = [
    "Authority",
    "EntitySchema",
    "Explanation",
    "Group",
    "Loser",
    "Reason",
    "Row",
    "Rule",
    "Statement",
    "attr_hash",
    "belief_history",
    "believed",
    "conflicts",
    "explained",
    "in_force",
    "order_key",
    "reconstruct",
    "restatements",
    "timeline",
]
