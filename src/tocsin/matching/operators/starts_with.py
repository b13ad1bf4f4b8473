"""`starts with`."""

from __future__ import annotations

from tocsin.matching.operators.one_by_one import OneByOne
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator

__all__ = ["StartsWith"]


@operator_index(Operator.STARTS_WITH)
class StartsWith(OneByOne):
    """The tests `starts with` that are held."""

    def __init__(self) -> None:
        super().__init__(str.startswith)
