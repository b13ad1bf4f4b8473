"""`starts with`."""

from __future__ import annotations

from tocsin.matching.operators.prefixes import PrefixIndex
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator


@operator_index(Operator.STARTS_WITH)
class StartsWith(PrefixIndex):
    """The prefixes that are asked for."""
