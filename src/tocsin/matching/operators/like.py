"""`like`, where nothing simpler says the same."""

from __future__ import annotations

from tocsin.language.patterns import regex_of_like
from tocsin.matching.operators.pattern_sets import PatternSets
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator


@operator_index(Operator.LIKE)
class Like(PatternSets):
    """Patterns with wildcards, as regular expressions."""

    def __init__(self) -> None:
        super().__init__(regex_of_like)
