"""Silver: curation is a function from one source's rows and what is held about them to the rows that must change."""
