"""Plots: figure 1 for each size of the table, and the studies that the rules for G and B are read from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.runner.plots import Panel, Plot, lines

_UNMATCHED, _TIME = "unmatched examined", "matching time"
_CLAUSES: Final = "clauses on equality-only attributes"
_SHARE: Final = "% of values that satisfy an inequality"
_BEST: Final = ("best of these",)

PLOTS: Final[Mapping[str, Plot]] = {
    "figure-1": lines(Panel("figure 1: *", _UNMATCHED, "x: constants are 6 to x", ""), widest=3),
    "hashed": lines(
        Panel("best G: *", _UNMATCHED, _CLAUSES, "", without=_BEST),
        Panel("best G: *", _TIME, _CLAUSES, "", without=_BEST),
        widest=2,
    ),
    "classes": lines(
        Panel("best B", _UNMATCHED, _SHARE, "unmatched examined an event", without=_BEST),
        Panel("best B", _TIME, _SHARE, "time an event", without=_BEST),
    ),
    "times": lines(Panel("time", _TIME, "subscriptions", "time an event, figure 1's workload, x = 95")),
}
