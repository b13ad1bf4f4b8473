"""Rows along the diagonal: the owner of the zone of (x, x) holds the rows at x, and knows the next owner on either side."""
