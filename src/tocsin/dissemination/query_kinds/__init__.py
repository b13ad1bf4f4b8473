"""Kinds of queries that a simulation asks: aggregates over ranges, and joins."""
