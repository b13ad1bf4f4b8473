"""Plots in the shape of the paper's figures 6 and 8, and of what is compared beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.runner.drawing import SizedPlot, draw_all, place_label, plain, short, side_by_side
from benchmarks.runner.lines import COLOURS, of
from benchmarks.runner.report import Measurement, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINES: Final = {  # the same in all panels, whoever takes part
    "S-CN": "#0072b2",
    "multicast": "#e69f00",
    "unicast": "#b2182b",
    "non-ignorable": "#0072b2",
    "as they come": "#7f7f7f",
}
_OURS: Final = ("Tocsin", "point index", "points")


class Panel(NamedTuple):
    """One pair of axes: which figures of which experiment, and what they were taken at."""

    experiment: str
    figure: str
    along: str
    title: str
    logarithmic: bool = False


def draw(report: Report, folder: Path) -> list[Path]:
    """Write the plots of a report as PNG files, and return them; raise `TocsinError` without matplotlib."""
    return draw_all(_PLOTS, report.measurements, folder)


def _panels(*panels: Panel) -> SizedPlot:
    """Return the plot of panels side by side."""
    return side_by_side(panels, _draw_panel)


def _draw_panel(axes: Axes, panel: Panel, measurements: Sequence[Measurement]) -> None:
    chosen = of(measurements, panel.experiment, panel.figure)
    for label in dict.fromkeys(str(one.details["matcher"]) for one in chosen):
        points = [(one.details["at"], one.value) for one in chosen if one.details["matcher"] == label]
        axes.plot(*zip(*points, strict=True), color=_LINES.get(label), marker="o", label=label)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.along)
    if not chosen:
        return
    places = sorted({float(one.details["at"]) for one in chosen})
    if places[-1] > 20 * places[0]:
        axes.set_xscale("log")
    axes.set_xticks(places, [place_label(place) for place in places])
    axes.xaxis.minorticks_off()
    if panel.logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, max(one.value for one in chosen) * 1.1 or 1.0)
    plain(axes.yaxis)


def _bars(experiment: str, name: str, title: str) -> SizedPlot:
    """Return a plot of one figure of an experiment, a bar for each that takes part, at the largest place."""

    def plot(figure: Figure, measurements: Sequence[Measurement]) -> bool:
        chosen = of(measurements, experiment, name)
        if not chosen:
            return False
        last = max(float(one.details["at"]) for one in chosen)
        chosen = [one for one in chosen if one.details["at"] == last and one.value > 0]
        names, values = [str(one.details["matcher"]) for one in chosen], [one.value for one in chosen]
        colours = [COLOURS["dynamic"] if label.startswith(_OURS) else COLOURS["counting"] for label in names]
        axes = figure.subplots()
        bars = axes.barh(names, values, color=colours)
        axes.bar_label(bars, [short(value) for value in values], padding=3)
        axes.invert_yaxis()
        axes.set_title(f"{title}, {place_label(last)} {_ALONG[experiment]}")
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 3, max(values) * 8)
        axes.xaxis.set_major_formatter(lambda value, _: place_label(value))
        return True

    return (7.0, 3.2), plot


_ALONG: Final = {"kinds": "subscriptions", "matchers": "subscriptions", "databases": "rows"}
_OUT: Final = "messages an update"
_PLOTS: Final[dict[str, SizedPlot]] = {
    "reformulate": _panels(
        Panel("reformulate", "time", "rows", "us an update"),
        Panel("reformulate", "messages", "rows", "messages an update"),
        Panel("reformulate", "memory", "rows", "bytes a row"),
    ),
    "server-rows": _panels(
        Panel("database-size", "time", "rows", "figure 6: us an update", logarithmic=True),
        Panel("database-size", "outgoing", "rows", f"table 2: {_OUT}", logarithmic=True),
    ),
    "server-subscriptions": _panels(
        Panel("subscriptions", "time", "subscriptions", "figure 8: us an update", logarithmic=True),
        Panel("subscriptions", "outgoing", "subscriptions", f"table 3: {_OUT}", logarithmic=True),
    ),
    "kinds": _bars("kinds", "updates", "updates a second by the kind of view"),
    "matchers": _bars("matchers", "time", "us a message by matcher"),
    "databases": _bars("databases", "average", "us an update of Table 1"),
}
