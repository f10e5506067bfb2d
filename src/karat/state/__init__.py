"""State: runs, events and positions in a database, a mirror of the lake's commits that may be lost without loss."""
