"""Gold: a star is a function from curated tables to dimensions and facts."""
