"""Sources: a source is a bounded read, (table, lower, upper] to DataFrame."""
