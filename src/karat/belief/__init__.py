"""Belief: a golden record is a pure function from statements and dated rules to one value per attribute, and whose word it is."""
