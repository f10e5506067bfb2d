"""Migrations: a store is upgraded by the steps it has not seen, in order; a step that was released is never edited."""
