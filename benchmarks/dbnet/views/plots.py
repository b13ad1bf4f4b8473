"""Plots in the shape of the paper's figures 6 and 8, and of the comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.runner.plots import Panel, Plot, lines, ranked_bars

_OUT: Final = "messages an update"

PLOTS: Final[Mapping[str, Plot]] = {
    "reformulate": lines(
        Panel("reformulate", "time", "rows", "time an update"),
        Panel("reformulate", "messages", "rows", _OUT),
        Panel("reformulate", "memory", "rows", "bytes a row"),
    ),
    "server-rows": lines(
        Panel("database-size", "time", "rows", "figure 6: time an update"),
        Panel("database-size", "outgoing", "rows", f"table 2: {_OUT}"),
    ),
    "server-subscriptions": lines(
        Panel("subscriptions", "time", "subscriptions", "figure 8: time an update"),
        Panel("subscriptions", "outgoing", "subscriptions", f"table 3: {_OUT}"),
    ),
    "kinds": ranked_bars("kinds", "updates", "updates a second by the kind of view", own=("",)),
    "matchers": ranked_bars("matchers", "time", "time of a message by matcher"),
    "databases": ranked_bars("databases", "average", "time of an update of Table 1"),
}
