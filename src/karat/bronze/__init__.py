"""Bronze: assertions are append-only evidence; a timeline is a pure function from assertions to periods."""
