"""Compiled loops of the multicast."""
