"""Names, strings and values as integers, once, for every matcher."""
