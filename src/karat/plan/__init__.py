"""Plan: a plan is a pure function from config and recorded state to stages in the order they must run."""
