"""Plots in the shape of the paper's figures, and those of S3 and S4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.runner.drawing import SizedPlot, draw_all, plain, short, side_by_side
from benchmarks.runner.lines import COLOURS, draw_lines, of
from benchmarks.runner.report import Measurement, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RATE: Final = "throughput"
_MAGNITUDE: Final = 12.0  # figures that differ by more are drawn on a logarithmic axis


class Panel(NamedTuple):
    """One pair of axes: which figures of which experiment, and what they were taken at."""

    experiment: str
    figure: str
    along: str
    title: str


def draw(report: Report, folder: Path) -> list[Path]:
    """Write the plots of a report as PNG files, and return them; raise `TocsinError` without matplotlib."""
    return draw_all(_PLOTS, report.measurements, folder)


def _panels(*panels: Panel) -> SizedPlot:
    """Return the plot of panels side by side."""
    return side_by_side(panels, _draw_panel)


def _draw_panel(axes: Axes, panel: Panel, measurements: Sequence[Measurement]) -> None:
    chosen = of(measurements, panel.experiment, panel.figure)
    chosen = [one for one in chosen if _is_compared(one, chosen)]
    draw_lines(axes, chosen)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.along)
    values = [one.value for one in chosen]
    if values and min(values) > 0 and max(values) / min(values) > _MAGNITUDE:
        axes.set_yscale("log")
    elif values:
        axes.set_ylim(0, max(values) * 1.1 or 1.0)
    if values:
        plain(axes.yaxis)
        shown = sorted({float(one.details["at"]) for one in chosen})
        axes.set_xticks(shown, [_place(place) for place in shown])
        axes.xaxis.minorticks_off()


def _is_compared(one: Measurement, others: Sequence[Measurement]) -> bool:
    """Tell whether anything else was measured at the same place; what was not is no part of a line."""
    return any(
        other.details["at"] == one.details["at"] and other.details["matcher"] != one.details["matcher"]
        for other in others
    )


def _ticks(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw prices a second as bars, for each question and each way of asking it."""
    chosen = of(measurements, "ticks", _RATE)
    axes = figure.subplots()
    labels = [str(one.details["matcher"]) for one in chosen]
    values = [one.value for one in chosen]
    colours = [
        COLOURS["dynamic"] if label.startswith(("Tocsin", "Engine")) else COLOURS["counting"]
        for label in labels
    ]
    bars = axes.barh(labels, values, color=colours)
    axes.bar_label(bars, [short(value) for value in values], padding=3)
    axes.invert_yaxis()
    axes.set_title("S3 and S4: prices a second, one core")
    if chosen:
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 3, max(values) * 4)
        plain(axes.xaxis)
    return bool(chosen)


def _place(value: float) -> str:
    """Return a number as short as it can be read."""
    return f"{value / 1e3:g}K" if value >= 1e3 else f"{value:g}"


_PLOTS: Final[dict[str, SizedPlot]] = {
    "figure-6": _panels(
        Panel("subscriptions", _RATE, "subscriptions", "figure 6a: events a second"),
        Panel("skew", _RATE, "zipf1", "figure 6b: by skew"),
        Panel("selectivity", _RATE, "selectivity", "figure 6c: by selectivity"),
    ),
    "nodes": _panels(
        Panel("subscriptions", "nodes", "subscriptions", "nodes after merging"),
        Panel("subscriptions", "active nodes", "subscriptions", "nodes with instances"),
        Panel("subscriptions", "visited nodes", "subscriptions", "nodes visited an event"),
    ),
    "figure-7": _panels(Panel("optimisation", _RATE, "subscriptions", "figure 7: events a second")),
    "figure-8": _panels(Panel("rss", _RATE, "subscriptions", "figure 8: events a second")),
    "loading": _panels(
        Panel("subscriptions", "loading", "subscriptions", "subscriptions loaded a second"),
        Panel("subscriptions", "memory", "subscriptions", "bytes per subscription"),
    ),
    "ticks": ((7.0, 3.2), _ticks),
}
