"""Queries from text: tokens, terms, conditions, clauses, queries, each reader a subclass of the one before.

The readers are layers of one recursive descent. They share the position by inheritance rather than by reference,
because every step reads it: a second attribute lookup per token would slow down parsing.
"""
