"""Queries from text: tokens, terms, conditions, clauses, queries.

One recursive descent: a module for each part of the grammar, whose functions read from a cursor and move it on.
"""
