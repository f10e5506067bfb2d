"""Execute: stages become commits; the only room that acts."""
