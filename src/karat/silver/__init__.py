"""Silver: a belief is a function from statements and a rule to one value per attribute; curation makes one source clean."""
