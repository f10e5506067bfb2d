"""Config: what the user declared, read as untrusted input and checked completely, with every problem reported."""
