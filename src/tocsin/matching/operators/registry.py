"""Which index answers for which operator. A module of this package that declares one is found by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TypeVar

from tocsin.matching import operators
from tocsin.matching.operators.index import OperatorIndex
from tocsin.model.conditions import Operator
from tocsin.model.errors import MatcherError

Factory = TypeVar("Factory", bound=Callable[[], OperatorIndex])

_INDEXES: dict[Operator, Callable[[], OperatorIndex]] = {}


def operator_index(operator: Operator) -> Callable[[Factory], Factory]:
    """Return a decorator that makes a class the index of `operator`, and of its negation with it."""

    def remember(factory: Factory) -> Factory:
        if operator in _INDEXES:
            raise MatcherError(f"two indexes answer for the operator `{operator}`")
        _INDEXES[operator] = factory
        return factory

    return remember


@cache
def operator_indexes() -> Mapping[Operator, Callable[[], OperatorIndex]]:
    """Return what makes an empty index, by operator.

    All modules of this package are imported at the first call: some of them bring the compiler.
    """
    for module in iter_modules(operators.__path__):
        if not module.name.startswith("_"):
            import_module(f"{operators.__name__}.{module.name}")
    return MappingProxyType(_INDEXES)
