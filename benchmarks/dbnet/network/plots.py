"""Plots in the shape of the paper's figures 6 to 13, and of what is compared beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from benchmarks.dbnet.network.figures import QUANTILES
from benchmarks.runner.drawing import (
    SizedPlot,
    draw_all,
    place_label,
    plain,
    short,
    side_by_side,
    with_legend,
)
from benchmarks.runner.lines import of
from benchmarks.runner.report import Measurement, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS: Final = {  # the same in all plots, whoever takes part
    "S-UN": "#b2182b",
    "S-MN": "#e69f00",
    "CN": "#7f7f7f",
    "CN+": "#cc79a7",
    "S-CN": "#0072b2",
    "DS-CN": "#009e73",
}
_MARKS: Final = dict(zip(_COLOURS, "sv^dDo", strict=True))
_SERVED: Final = ("S-UN", "S-MN", "S-CN")
"""Strategies that have a server, whose time and messages can be compared."""


class Panel(NamedTuple):
    """One pair of axes: a figure of an experiment, what it was taken at, and by whom."""

    experiment: str
    figure: str
    along: str
    title: str
    strategies: Sequence[str] = tuple(_COLOURS)
    by: str = ""  # the figure that is along, if it is measured too
    is_log: bool = True


def draw(report: Report, folder: Path) -> list[Path]:
    """Write the plots of a report as PNG files, and return them; raise `TocsinError` without matplotlib."""
    return draw_all(_PLOTS, report.measurements, folder)


def _panels(*panels: Panel) -> SizedPlot:
    """Return the plot of panels side by side."""
    return side_by_side(panels, _draw_panel)


def _draw_panel(axes: Axes, panel: Panel, measurements: Sequence[Measurement]) -> None:
    chosen = of(measurements, panel.experiment, panel.figure)
    places = {
        (one.details["matcher"], one.details["at"]): one.value
        for one in of(measurements, panel.experiment, panel.by)
    }
    for strategy in panel.strategies:
        points = [
            (places.get((strategy, one.details["at"]), one.details["at"]), one.value)
            for one in chosen
            if one.details["matcher"] == strategy
        ]
        if points:
            along, up = zip(*points, strict=True)
            axes.plot(along, up, color=_COLOURS[strategy], marker=_MARKS[strategy], label=strategy)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.along)
    if not axes.lines:
        return
    axes.xaxis.set_major_formatter(lambda value, _: place_label(value))
    if panel.is_log and all(one.value > 0 for one in chosen if one.details["matcher"] in panel.strategies):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    plain(axes.yaxis)


def _draw_shares(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw which share of the events has at most so much traffic (figure 12)."""
    axes = figure.subplots()
    for one in of(measurements, "distribution", QUANTILES):
        strategy = str(one.details["matcher"])
        levels = [
            (float(level), float(name.removesuffix(" %")))
            for name, level in one.details.items()
            if name.endswith(" %")
        ]
        traffic, shares = np.array(sorted(levels)).T
        axes.step(traffic, shares, where="post", color=_COLOURS[strategy], label=strategy)
    axes.set_title("figure 12: % of events with at most so much traffic")
    axes.set_xlabel("bytes")
    axes.set_xscale("symlog", linthresh=10)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 101)
    axes.xaxis.set_major_formatter(lambda value, _: place_label(value))
    return with_legend(figure)


def _bar_label(height: float) -> str:
    """Return a label that is no wider than a bar, of which there may be many."""
    return short(height) if height < 1_000 else place_label(float(f"{height:.2g}"))


def _bars(experiment: str, *names: tuple[str, str]) -> SizedPlot:
    """Return a plot of some figures of an experiment, with a group of bars for each place and a bar for each strategy."""

    def plot(figure: Figure, measurements: Sequence[Measurement]) -> bool:
        grid = figure.subplots(1, len(names), squeeze=False)[0]
        for axes, (name, title) in zip(grid, names, strict=True):
            chosen = of(measurements, experiment, name)
            places = list(dict.fromkeys(str(one.details["at"]) for one in chosen))
            strategies = [one for one in _COLOURS if one in {m.details["matcher"] for m in chosen}]
            for number, strategy in enumerate(strategies):
                own = {str(m.details["at"]): m.value for m in chosen if m.details["matcher"] == strategy}
                heights = [own.get(place, 0.0) for place in places]
                left = np.arange(len(places)) + (number - (len(strategies) - 1) / 2) * 0.8 / len(strategies)
                drawn = axes.bar(
                    left, heights, 0.8 / len(strategies), color=_COLOURS[strategy], label=strategy
                )
                axes.bar_label(drawn, list(map(_bar_label, heights)), fontsize=5, padding=1)
            axes.set_xticks(range(len(places)), places)
            axes.set_title(title)
            if chosen and max(one.value for one in chosen) > 0:
                axes.set_yscale("log")
                plain(axes.yaxis)
        return with_legend(figure)

    return (max(4.6 * len(names), 7.2), 3.2), plot


_TRAFFIC: Final = "bytes an event"
_PLOTS: Final[dict[str, SizedPlot]] = {
    "figure-6": _panels(
        Panel("database-size", "server time", "rows", "figure 6: server us an event", _SERVED),
        Panel("database-size", "outgoing", "rows", "table 2: messages out of the server", ("S-UN", "S-CN")),
    ),
    "figure-7": _panels(Panel("database-size", "traffic", "rows", f"figure 7: {_TRAFFIC}")),
    "figure-8": _panels(
        Panel("subscriptions", "server time", "subscriptions", "figure 8: server us an event", _SERVED),
        Panel(
            "subscriptions",
            "outgoing",
            "subscriptions",
            "table 3: messages out of the server",
            ("S-UN", "S-CN"),
        ),
    ),
    "figure-9": _panels(Panel("subscriptions", "traffic", "subscriptions", f"figure 9: {_TRAFFIC}")),
    "figure-10": _panels(
        Panel("ignorable", "overlay hops", "% ignorable", "figure 10: overlay hops an event"),
        Panel("ignorable", "traffic", "% ignorable", _TRAFFIC),
        Panel("ignorable", "IP hops", "% ignorable", "IP hops an event"),
    ),
    "figure-11": _panels(
        Panel("affected", "traffic", "affected subscriptions an event", f"figure 11: {_TRAFFIC}", by="told"),
    ),
    "figure-12": ((7.2, 3.6), _draw_shares),
    "figure-13": _panels(
        Panel("trace", "traffic", "subscriptions", f"figure 13: {_TRAFFIC}"),
        Panel("trace", "highest stress", "subscriptions", "highest stress, messages"),
    ),
    "quotes": _panels(
        Panel("quotes", "traffic", "subscriptions", f"quotes as they were: {_TRAFFIC}"),
        Panel("quotes", "highest stress", "subscriptions", "highest stress, messages"),
    ),
    "network-kinds": _bars(
        "kinds", ("traffic", f"{_TRAFFIC} by kind"), ("outgoing", "messages out of the server")
    ),
    "splitting": _bars(
        "splitting", ("traffic", f"{_TRAFFIC} by splitting"), ("overlay hops", "overlay hops")
    ),
}
