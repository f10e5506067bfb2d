"""Runner: a plan becomes stages in order, parallel, retried, isolated and reported."""
