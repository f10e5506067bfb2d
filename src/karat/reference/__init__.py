"""Reference: what follows from statements, over plain rows: a timeline, and by rules a belief; answers for one key, oracle of the tests."""

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
