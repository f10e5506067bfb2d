"""Contract: the gate is a function from what a feed hands over to statements, each admitted, ignored or refused with a reason."""
