"""Lake: the one Spark session, the tables and their commits; a commit carries the position that it was made from."""
