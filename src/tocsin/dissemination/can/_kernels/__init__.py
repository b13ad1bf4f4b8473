"""Compiled loops over zones."""
