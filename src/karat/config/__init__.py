"""Config: what the user said, read without trust and reported without loss."""
