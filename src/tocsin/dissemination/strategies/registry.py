"""Strategies by name: a new one is one new module, entered here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from tocsin.dissemination.strategies.strategy import Strategy
from tocsin.model.errors import TocsinError

STRATEGIES: Final[Mapping[str, str]] = {
    "S-UN": "tocsin.dissemination.strategies.s_un:ServerUnicast",
    "S-MN": "tocsin.dissemination.strategies.s_mn:ServerMulticast",
    "CN": "tocsin.dissemination.strategies.cn:ContentNetwork",
    "CN+": "tocsin.dissemination.strategies.cn_plus:CutoffContentNetwork",
    "S-CN": "tocsin.dissemination.strategies.s_cn:ServerContentNetwork",
    "DS-CN": "tocsin.dissemination.strategies.ds_cn:DistributedContentNetwork",
}
"""The module and the class of each strategy."""


def strategy_named(name: str) -> type[Strategy]:
    """Return a strategy by its name in any case; raise `TocsinError` if there is none."""
    if name.upper() not in STRATEGIES:
        raise TocsinError(f"there is no strategy `{name}`; there are: {', '.join(STRATEGIES)}")
    module, _, called = STRATEGIES[name.upper()].partition(":")
    found: type[Strategy] = getattr(import_module(module), called)
    return found
