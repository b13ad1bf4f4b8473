"""Plots in the shape of the paper's figures, and of S3 and S4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.runner.plots import Panel, Plot, lines, ranked_bars

_RATE: Final = "throughput"

PLOTS: Final[Mapping[str, Plot]] = {
    "figure-6": lines(
        Panel("subscriptions", _RATE, "subscriptions", "figure 6a: events a second"),
        Panel("skew", _RATE, "zipf1", "figure 6b: by skew"),
        Panel("selectivity", _RATE, "selectivity", "figure 6c: by selectivity"),
    ),
    "nodes": lines(
        Panel("subscriptions", "nodes", "subscriptions", "nodes after merging"),
        Panel("subscriptions", "active nodes", "subscriptions", "nodes with instances"),
        Panel("subscriptions", "visited nodes", "subscriptions", "nodes visited an event"),
    ),
    "figure-7": lines(Panel("optimisation", _RATE, "subscriptions", "figure 7: events a second")),
    "figure-8": lines(Panel("rss", _RATE, "subscriptions", "figure 8: events a second")),
    "loading": lines(
        Panel("subscriptions", "loading", "subscriptions", "subscriptions loaded a second"),
        Panel("subscriptions", "memory", "subscriptions", "bytes per subscription"),
    ),
    "ticks": ranked_bars("ticks", _RATE, "S3 and S4: prices a second, one core"),
}
