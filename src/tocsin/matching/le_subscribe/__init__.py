"""Le Subscribe: filtering millions of conjunctions (Fabret and others, SIGMOD 2001)."""
