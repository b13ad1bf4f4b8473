"""The index of each operator. All modules of this package are searched for indexes, so a new one needs no list."""

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
    """Return a decorator that registers a class, or any factory, as the index of `operator` and of its negation."""

    def register(factory: Factory) -> Factory:
        if operator in _INDEXES:
            raise MatcherError(f"two indexes answer for the operator `{operator}`")
        _INDEXES[operator] = factory
        return factory

    return register


@cache
def operator_indexes() -> Mapping[Operator, Callable[[], OperatorIndex]]:
    """Return the factories of empty indexes by operator.

    The first call imports all modules of this package; some of them import the compiler.
    """
    for module in iter_modules(operators.__path__):
        if not module.name.startswith("_"):
            import_module(f"{operators.__name__}.{module.name}")
    return MappingProxyType(_INDEXES)
