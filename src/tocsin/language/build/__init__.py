"""Queries built in Python, from the same operators as the text."""
