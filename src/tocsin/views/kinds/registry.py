"""Kinds of view by name: a new kind is one new module, entered here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from tocsin.views.kinds.kind import Kind

RANGED: Final[Mapping[str, str]] = {
    "min": "tocsin.views.kinds.least",
    "max": "tocsin.views.kinds.greatest",
    "count": "tocsin.views.kinds.number",
    "sum": "tocsin.views.kinds.total",
    "avg": "tocsin.views.kinds.mean",
    "distinct": "tocsin.views.kinds.distinct",
}
"""The kinds that a range of one attribute decides, and the module of each, which has it as `KIND`."""


def kind_named(name: str) -> Kind:
    """Return a kind by its name; its module is imported only now, since it brings the compiler."""
    kind = import_module(RANGED[name]).KIND
    assert isinstance(kind, Kind)  # noqa: S101 - so every module says
    return kind
