"""Reference: a timeline is a function from statements to periods, over plain rows; the answer for one key and the oracle of the tests."""

from karat.reference.canonical import attr_hash
from karat.reference.inheritance import reconstruct
from karat.reference.statements import order_key
from karat.reference.terms import Row, Terms
from karat.reference.timeline import timeline

__all__ = ["Row", "Terms", "attr_hash", "order_key", "reconstruct", "timeline"]
