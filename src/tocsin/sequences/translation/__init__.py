"""Translation: a sequence as it was written becomes an expression of the algebra."""

from tocsin.sequences.translation.steps import expression_of, parenthesised_name

__all__ = ["expression_of", "parenthesised_name"]
