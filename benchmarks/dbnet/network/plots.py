"""Plots in the shape of the paper's figures 6 to 13, and of the comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.dbnet.network.figures import QUANTILES
from benchmarks.runner.plots import COLOURS, Bars, Panel, Plot, grouped_bars, lines, place_label, with_legend
from benchmarks.runner.report import Measurement, of_experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SERVED: Final = ("S-UN", "S-MN", "S-CN")
"""Strategies that have a server, whose time and messages can be compared."""
_SENDING: Final = ("S-UN", "S-CN")
_TRAFFIC: Final = "bytes an event"
_TIME: Final = "server time an event"
_OUT: Final = "messages out of the server"
_STRESS: Final = "highest stress, messages"


def _shares(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw the share of the events that have at most so much traffic (figure 12)."""
    figure.set_size_inches(7.2, 3.6)
    axes = figure.subplots()
    for one in of_experiment(measurements, "distribution", QUANTILES):
        strategy = str(one.details["matcher"])
        levels = [
            (float(level), float(name.removesuffix(" %")))
            for name, level in one.details.items()
            if name.endswith(" %")
        ]
        traffic, shares = np.array(sorted(levels)).T
        axes.step(traffic, shares, where="post", color=COLOURS.get(strategy), label=strategy)
    axes.set_title("figure 12: % of events with at most so much traffic")
    axes.set_xlabel("bytes")
    axes.set_xscale("symlog", linthresh=10)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 101)
    axes.xaxis.set_major_formatter(lambda value, _: place_label(value))
    return with_legend(figure)


PLOTS: Final[Mapping[str, Plot]] = {
    "figure-6": lines(
        Panel("database-size", "server time", "rows", f"figure 6: {_TIME}", labels=_SERVED),
        Panel("database-size", "outgoing", "rows", f"table 2: {_OUT}", labels=_SENDING),
    ),
    "figure-7": lines(Panel("database-size", "traffic", "rows", f"figure 7: {_TRAFFIC}")),
    "figure-8": lines(
        Panel("subscriptions", "server time", "subscriptions", f"figure 8: {_TIME}", labels=_SERVED),
        Panel("subscriptions", "outgoing", "subscriptions", f"table 3: {_OUT}", labels=_SENDING),
    ),
    "figure-9": lines(Panel("subscriptions", "traffic", "subscriptions", f"figure 9: {_TRAFFIC}")),
    "figure-10": lines(
        Panel("ignorable", "overlay hops", "% ignorable", "figure 10: overlay hops an event"),
        Panel("ignorable", "traffic", "% ignorable", _TRAFFIC),
        Panel("ignorable", "IP hops", "% ignorable", "IP hops an event"),
    ),
    "figure-11": lines(
        Panel("affected", "traffic", "affected subscriptions an event", f"figure 11: {_TRAFFIC}", by="told")
    ),
    "figure-12": _shares,
    "figure-13": lines(
        Panel("trace", "traffic", "subscriptions", f"figure 13: {_TRAFFIC}"),
        Panel("trace", "highest stress", "subscriptions", _STRESS),
    ),
    "quotes": lines(
        Panel("quotes", "traffic", "subscriptions", f"quotes as they were: {_TRAFFIC}"),
        Panel("quotes", "highest stress", "subscriptions", _STRESS),
    ),
    "network-kinds": grouped_bars(
        Bars("kinds", "traffic", f"{_TRAFFIC} by kind"), Bars("kinds", "outgoing", _OUT)
    ),
    "splitting": grouped_bars(
        Bars("splitting", "traffic", f"{_TRAFFIC} by splitting"),
        Bars("splitting", "overlay hops", "overlay hops"),
    ),
}
