"""Kinds of queries in a simulation: aggregates over ranges, and joins."""
