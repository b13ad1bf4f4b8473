"""`~`: regular expressions."""

from __future__ import annotations

from tocsin.matching.operators.pattern_sets import PatternSets
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator


@operator_index(Operator.REGEX)
class Regex(PatternSets):
    """Regular expressions as they are written."""

    def __init__(self) -> None:
        super().__init__(str)
