"""Belief: a golden record is a function from statements and dated rules to one value per attribute."""
