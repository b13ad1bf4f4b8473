"""Le Subscribe's experiments (Fabret and others, SIGMOD 2001, 6)."""
