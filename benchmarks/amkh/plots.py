"""Plots: figure 1 for each size of the table, and what the rules for G and B are read from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.runner.drawing import SizedPlot, draw_all, plain, with_legend
from benchmarks.runner.lines import draw_lines, of
from benchmarks.runner.report import Measurement, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_UNMATCHED, _TIME = "unmatched examined", "matching time"
_COLUMNS: Final = 3


def draw(report: Report, folder: Path) -> list[Path]:
    """Write the plots of a report as PNG files, and return them; raise `TocsinError` without matplotlib."""
    return draw_all(_PLOTS, report.measurements, folder)


def _figure_1(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw the unmatched subscriptions examined, a pair of axes for each size of the table."""
    names = _parts(measurements, "figure 1")
    rows = max(-(-len(names) // _COLUMNS), 1)
    grid = figure.subplots(rows, _COLUMNS, squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        _draw(axes, of(measurements, name, _UNMATCHED), name.partition(": ")[2], "x: constants are 6 to x")
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    for line in grid:
        line[0].set_ylabel("unmatched examined an event")
    return with_legend(figure)


def _hashed(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw what G costs by the number of equality-only clauses: what is examined, and the time."""
    names = _parts(measurements, "best G")
    grid = figure.subplots(2, max(len(names), 1), squeeze=False)
    for column, name in enumerate(names):
        along = "clauses on equality-only attributes"
        _draw(grid[0][column], _sweep(measurements, name, _UNMATCHED), name.partition(": ")[2], along)
        _draw(grid[1][column], _sweep(measurements, name, _TIME), "", along)
    grid[0][0].set_ylabel("unmatched examined an event")
    grid[1][0].set_ylabel("µs an event")
    return with_legend(figure)


def _classes(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw what B costs by the selectivity of inequalities: what is examined, and the time."""
    along = "% of values that an inequality holds for"
    left, right = figure.subplots(1, 2)
    for axes, name, title in (
        (left, _UNMATCHED, "unmatched examined an event"),
        (right, _TIME, "µs an event"),
    ):
        _draw(axes, _sweep(measurements, "best B", name), title, along, is_logarithmic=True)
    return with_legend(figure)


def _times(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw the time an event takes, by the number of subscriptions."""
    axes = figure.subplots()
    chosen = of(measurements, "time", _TIME)
    _draw(axes, chosen, "time an event, figure 1's workload, x = 95", "subscriptions", is_logarithmic=True)
    axes.set_ylabel("µs an event")
    return with_legend(figure)


def _draw(
    axes: Axes,
    measurements: Sequence[Measurement],
    title: str,
    along: str,
    *,
    is_logarithmic: bool = False,
) -> None:
    if draw_lines(axes, measurements):
        if (
            min(one.value for one in measurements) < 1
        ):  # a logarithmic axis cannot show that nothing is examined
            axes.set_yscale("symlog", linthresh=1.0)
        else:
            axes.set_yscale("log")
        plain(axes.yaxis)
        if is_logarithmic:
            axes.set_xscale("log")
        places = sorted({float(one.details["at"]) for one in measurements})
        axes.set_xticks(places, [f"{place:,.0f}" for place in places])
        axes.xaxis.minorticks_off()
    axes.set_title(title)
    axes.set_xlabel(along)


def _parts(measurements: Sequence[Measurement], experiment: str) -> list[str]:
    names = dict.fromkeys(str(one.details["experiment"]) for one in measurements)
    return [name for name in names if name.startswith(experiment)]


def _sweep(measurements: Sequence[Measurement], experiment: str, name: str) -> list[Measurement]:
    return [one for one in of(measurements, experiment, name) if one.details["matcher"] != "best of these"]


_PLOTS: Final[dict[str, SizedPlot]] = {
    "figure-1": ((9.6, 5.6), _figure_1),
    "hashed": ((7.4, 5.2), _hashed),
    "classes": ((7.4, 3.0), _classes),
    "times": ((5.0, 3.0), _times),
}
