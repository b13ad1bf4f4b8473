"""Plots in the shape of the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.runner.plots import Bars, Panel, Plot, grouped_bars, lines

_TIME: Final = "time per event"
_HOURS: Final = "hours, at 50 subscriptions replaced a second"
_WORKLOADS: Final = {
    "W0": "W0\n5 equalities",
    "W1": "W1\n4 equalities, 1 range",
    "W2": "W2\n4 equalities, 5 ranges",
    "W0 with ranges": "W0 with ranges\n2 equalities, 3 ranges",
}

PLOTS: Final[Mapping[str, Plot]] = {
    "time_per_event": lines(
        Panel("subscriptions", _TIME, "subscriptions", "figure 3a, W0: five equalities"),
        Panel("subscriptions with ranges", _TIME, "subscriptions", "W0: two equalities, three ranges"),
    ),
    "phases": lines(
        Panel("subscriptions", _TIME, "subscriptions", "W0, phase 1: predicates", detail="phase 1"),
        Panel("subscriptions", _TIME, "subscriptions", "W0, phase 2: subscriptions", detail="phase 2"),
    ),
    "operators": grouped_bars(Bars("operators", _TIME, "figure 3b: mix of operators", names=_WORKLOADS)),
    "memory": lines(
        Panel("subscriptions", "memory per subscription", "subscriptions", "W0: memory in the matcher")
    ),
    "loading": lines(
        Panel("subscriptions", "loading rate", "subscriptions", "W0: loading", detail="seconds")
    ),
    "values_and_predicates": lines(
        Panel("domain", _TIME, "values an attribute may have", "number of values"),
        Panel("predicates", _TIME, "predicates in a subscription", "number of predicates"),
    ),
    "drift": lines(
        Panel("drift", _TIME, _HOURS, "figure 4a: new subscriptions use the other half of the names")
    ),
    "skew": lines(Panel("skew", _TIME, _HOURS, "figure 4b: fixed attributes come down to two values")),
}
