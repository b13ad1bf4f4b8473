"""Compiled loops of the simulation."""
