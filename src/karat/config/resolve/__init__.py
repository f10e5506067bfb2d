"""Resolve: a declaration becomes a value with every name resolved, or problems with line and remedy."""
