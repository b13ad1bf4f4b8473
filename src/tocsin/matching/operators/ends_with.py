"""`ends with`."""

from __future__ import annotations

from typing import ClassVar

from tocsin.matching.operators.prefixes import PrefixIndex
from tocsin.matching.operators.registry import operator_index
from tocsin.model.conditions import Operator


@operator_index(Operator.ENDS_WITH)
class EndsWith(PrefixIndex):
    """The suffixes that are asked for: prefixes of what is read backwards."""

    backwards: ClassVar[bool] = True
