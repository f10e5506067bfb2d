"""Declared: what a declaration of each kind may say, as a frozen model."""
