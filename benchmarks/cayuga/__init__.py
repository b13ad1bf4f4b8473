"""Cayuga's experiments (Demers and others, EDBT 2006, 4), and SQL and pandas for two of its queries."""
