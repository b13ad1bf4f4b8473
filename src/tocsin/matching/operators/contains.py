"""`contains`."""

from __future__ import annotations

from tocsin.matching.operators.one_by_one import OneByOne
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator

__all__ = ["Contains"]


@operator_index(Operator.CONTAINS)
class Contains(OneByOne):
    """The tests `contains` that are held."""

    def __init__(self) -> None:
        super().__init__(lambda text, part: part in text)
