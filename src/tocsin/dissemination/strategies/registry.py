"""Strategies by name: a new one is one new module, entered here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from tocsin.dissemination.strategies.strategy import Strategy
from tocsin.model.errors import TocsinError

STRATEGIES: Final[Mapping[str, str]] = {
    "S-UN": "tocsin.dissemination.strategies.s_un",
    "S-MN": "tocsin.dissemination.strategies.s_mn",
    "CN": "tocsin.dissemination.strategies.cn",
    "CN+": "tocsin.dissemination.strategies.cn_plus",
    "S-CN": "tocsin.dissemination.strategies.s_cn",
    "DS-CN": "tocsin.dissemination.strategies.ds_cn",
}
"""The module of each strategy; it has the class as `STRATEGY`."""


def strategy_named(name: str) -> type[Strategy]:
    """Return a strategy by its name in any case; raise `TocsinError` if there is none."""
    module = STRATEGIES.get(name.upper())
    if module is None:
        raise TocsinError(f"there is no strategy `{name}`; there are: {', '.join(STRATEGIES)}")
    found: type[Strategy] = import_module(module).STRATEGY
    return found
