"""Aggregates by their name in the language: a new one is one new module, entered here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from tocsin.views.aggregates.base import AggregateStrategies, ByRange, RowAggregate
from tocsin.views.compiled import CompiledRowView

_MODULES: Final[Mapping[str, str]] = {
    "min": "extremes",
    "max": "extremes",
    "count": "count",
    "sum": "totals",
    "avg": "totals",
    "distinct": "distinct",
    "rows": "rows",
}
"""The module that has each aggregate among its `AGGREGATES`."""

RANGE_AGGREGATES: Final = ("min", "max", "count", "sum", "avg", "distinct")
"""The aggregates that can be kept by range."""


def range_aggregate(name: str) -> ByRange:
    """Return how an aggregate is kept by range."""
    by_range = _aggregate(name).by_range
    assert by_range is not None  # noqa: S101 - the names of `RANGE_AGGREGATES` have it
    return by_range


def row_aggregate(compiled: CompiledRowView) -> RowAggregate[Any, Any]:
    """Return a new aggregate that is kept by row, for subscriptions that are compiled so."""
    return _aggregate(compiled.aggregate).by_row(compiled)


def _aggregate(name: str) -> AggregateStrategies:
    """Return an aggregate; its module is imported only now, since it brings the compiler."""
    found = import_module(f"tocsin.views.aggregates.{_MODULES[name]}").AGGREGATES[name]
    assert isinstance(found, AggregateStrategies)  # noqa: S101 - so every module says
    return found
