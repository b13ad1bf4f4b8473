"""Text to the model: tokens, terms, conditions, queries, each reader built on the one before."""

from tocsin.language.parsing.parser import canonical, parse, parse_condition, parse_template, read

__all__ = ["canonical", "parse", "parse_condition", "parse_template", "read"]
