"""`~`."""

from __future__ import annotations

from tocsin.language.patterns import compile_regex
from tocsin.matching.operators.one_by_one import OneByOne
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator

__all__ = ["Regex"]


@operator_index(Operator.REGEX)
class Regex(OneByOne):
    """The tests `~` that are held."""

    def __init__(self) -> None:
        super().__init__(lambda text, pattern: compile_regex(pattern).search(text) is not None)
