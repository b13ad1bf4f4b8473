"""`ends with`."""

from __future__ import annotations

from tocsin.matching.operators.one_by_one import OneByOne
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator

__all__ = ["EndsWith"]


@operator_index(Operator.ENDS_WITH)
class EndsWith(OneByOne):
    """The tests `ends with` that are held."""

    def __init__(self) -> None:
        super().__init__(str.endswith)
