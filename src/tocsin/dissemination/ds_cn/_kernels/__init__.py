"""Compiled loops over the rows along the diagonal."""
