"""State: a mirror of what the lake's own commits say, kept where it is quick to ask; losing it loses nothing."""
