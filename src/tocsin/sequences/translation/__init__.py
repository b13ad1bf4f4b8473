"""Text to algebra: a sequence as it was written becomes an expression that says what it means."""

from tocsin.sequences.translation.steps import expression_of, parenthesised_name

__all__ = ["expression_of", "parenthesised_name"]
