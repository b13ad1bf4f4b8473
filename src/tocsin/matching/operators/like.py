"""`like`."""

from __future__ import annotations

from tocsin.language.patterns import compile_like
from tocsin.matching.operators.one_by_one import OneByOne
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator

__all__ = ["Like"]


@operator_index(Operator.LIKE)
class Like(OneByOne):
    """The tests `like` that are held."""

    def __init__(self) -> None:
        super().__init__(lambda text, pattern: compile_like(pattern).search(text) is not None)
