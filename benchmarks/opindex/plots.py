"""Plots in the shape of the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from benchmarks.runner.drawing import SizedPlot, draw_all, plain, with_legend
from benchmarks.runner.lines import draw_lines, of
from benchmarks.runner.report import Measurement, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BUILD, _MATCHING, _MEMORY = "build time", "matching time", "memory"
_UNITS: Final = {_BUILD: "build time (s)", _MATCHING: "matching time per event (µs)", _MEMORY: "memory (MB)"}
_MAGNITUDE: Final = 12.0  # figures that differ by more are drawn on a logarithmic axis
_DECADES: Final = 300.0  # up to here there is room for a number at 2 and at 5, too
_SPREAD: Final = 15.0  # likewise what they were taken at,
_EVEN: Final = 2.0  # unless no gap is so many times as wide as another


class Panel(NamedTuple):
    """One pair of axes: which figures of which experiment, and what they were taken at."""

    experiment: str
    figure: str
    along: str
    title: str
    kind: str = ""  # of events


def draw(report: Report, folder: Path) -> list[Path]:
    """Write the plots of a report as PNG files, and return them; raise `TocsinError` without matplotlib."""
    return draw_all(_PLOTS, report.measurements, folder)


def _panels(*rows: Sequence[Panel]) -> SizedPlot:
    """Return the plot of rows of panels; the panels of a row that tell the same figure have one scale."""
    width = max(map(len, rows))
    return (3.0 * width + 0.6, 2.6 * len(rows) + 0.5), _drawn(rows)


def _drawn(rows: Sequence[Sequence[Panel]]) -> Callable[[Figure, Sequence[Measurement]], bool]:
    def plot(figure: Figure, measurements: Sequence[Measurement]) -> bool:
        grid = figure.subplots(len(rows), max(map(len, rows)), squeeze=False)
        for line, panels in zip(grid, rows, strict=True):
            for axes in line[len(panels) :]:
                axes.set_axis_off()
            groups: dict[str, list[Axes]] = {}
            for axes, panel in zip(line, panels, strict=False):
                _draw_panel(axes, panel, measurements)
                groups.setdefault(panel.figure, []).append(axes)
            for name, alike in groups.items():
                alike[0].set_ylabel(_UNITS[name])
                _set_scale(alike)
        return with_legend(figure)

    return plot


def _is_even(places: Sequence[float]) -> bool:
    """Tell whether places are about as far apart from each other, so that a plain axis has room for their numbers."""
    gaps = [after - before for before, after in pairwise(places)]
    return max(gaps) < _EVEN * min(gaps)


def _draw_panel(axes: Axes, panel: Panel, measurements: Sequence[Measurement]) -> None:
    figures = of(measurements, panel.experiment, panel.figure)
    chosen = [one for one in figures if one.details.get("kind", "") == panel.kind]
    draw_lines(axes, chosen)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.along)
    places = sorted({float(one.details["at"]) for one in chosen})
    if places and places[0] > 0 and places[-1] / places[0] > _SPREAD and not _is_even(places):
        axes.set_xscale("log")
    if places:
        axes.set_xticks(places, [_place(place) for place in places])
        axes.minorticks_off()


def _set_scale(panels: Sequence[Axes]) -> None:
    """Give panels one scale: logarithmic if their figures differ by much, else from zero."""
    from matplotlib.ticker import LogLocator  # noqa: PLC0415 - an optional part

    drawn = np.concatenate([np.empty(0), *(line.get_ydata() for axes in panels for line in axes.lines)])
    if not drawn.any():
        return
    least, most = float(drawn.min()), float(drawn.max())
    is_logarithmic = least > 0 and most / least > _MAGNITUDE
    for axes in panels:
        if is_logarithmic:
            axes.set_yscale("log")
            axes.set_ylim(least / 1.6, most * 1.6)
            axes.yaxis.set_major_locator(
                LogLocator(subs=(1.0, 2.0, 5.0) if most / least < _DECADES else (1.0,))
            )
            plain(axes.yaxis)
        else:
            axes.set_ylim(0, most * 1.1)
    for axes in panels[1:]:
        axes.tick_params(labelleft=False)


def _place(value: float) -> str:
    """Return a number as short as it can be read."""
    for size, letter in ((1e6, "M"), (1e3, "K")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


_PLOTS: Final[dict[str, SizedPlot]] = {
    "attributes": _panels(
        [
            Panel("attributes", _BUILD, "attributes", "figure 1: building"),
            Panel("attributes", _MATCHING, "attributes", "figure 1: matching"),
        ]
    ),
    "capacity": _panels(
        [
            Panel("capacity", _BUILD, "capacity of a leaf", "figure 7: building"),
            Panel("capacity", _MATCHING, "capacity of a leaf", "figure 7: matching"),
        ]
    ),
    "memory": _panels(
        [
            Panel("subscriptions", _MEMORY, "subscriptions", "figure 8a: by subscriptions"),
            Panel("values", _MEMORY, "values of an attribute", "figure 8b: by values"),
        ]
    ),
    "building": _panels(
        [
            Panel("subscriptions", _BUILD, "subscriptions", "figure 9a: by subscriptions"),
            Panel("predicates", _BUILD, "largest subscription", "figure 9b: by predicates"),
        ]
    ),
    "matching": _panels(
        [
            Panel("subscriptions", _MATCHING, "subscriptions", "figure 10a: subscriptions"),
            Panel("predicates", _MATCHING, "largest subscription", "figure 10b: predicates"),
            Panel("pairs", _MATCHING, "largest event", "figure 10c: event size, 1 to m"),
            Panel("full events", _MATCHING, "size of all events", "figure 10c: event size, all m"),
        ],
        [
            Panel("equal share", _MATCHING, "% of predicates that are =", "figure 10d: operators"),
            Panel("values", _MATCHING, "values of an attribute", "figure 10e: values"),
            Panel("zipf", _MATCHING, "Zipf's exponent", "figure 10f: skew"),
        ],
    ),
    "keywords": _panels(
        [
            Panel("keywords", _BUILD, "subscriptions", "figure 11: building, ="),
            Panel("keywords", _MATCHING, "subscriptions", "short documents, =", "short"),
            Panel("keywords", _MATCHING, "subscriptions", "long documents, =", "long"),
        ],
        [
            Panel("keyword intervals", _BUILD, "subscriptions", "figure 11: building, intervals"),
            Panel("keyword intervals", _MATCHING, "subscriptions", "short, intervals", "short"),
            Panel("keyword intervals", _MATCHING, "subscriptions", "long, intervals", "long"),
        ],
    ),
    "products": _panels(
        [
            Panel("products", _BUILD, "subscriptions", "figure 12: building"),
            Panel("product predicates", _BUILD, "largest subscription", "building"),
            Panel("products from one", _BUILD, "subscriptions", "building, drawn from a product"),
        ],
        [
            Panel("products", _MATCHING, "subscriptions", "matching"),
            Panel("product predicates", _MATCHING, "largest subscription", "matching"),
            Panel("products from one", _MATCHING, "subscriptions", "matching, drawn from a product"),
        ],
    ),
    "forms": _panels(
        [
            Panel("dnf", _MATCHING, "subscriptions", "figure 13a: DNF"),
            Panel("cnf", _MATCHING, "subscriptions", "figure 13a: CNF"),
        ],
        [
            Panel("dnf clauses", _MATCHING, "most clauses", "figure 13b: DNF"),
            Panel("cnf clauses", _MATCHING, "most clauses", "figure 13b: CNF"),
        ],
    ),
    "prefix": _panels(
        [
            Panel("prefix share", _MATCHING, "% prefixes", "figure 14a: any attributes", "any"),
            Panel("prefix share", _MATCHING, "% prefixes", "mostly words", "words"),
        ],
        [
            Panel("prefix length", _MATCHING, "letters", "figure 14b: any attributes", "any"),
            Panel("prefix length", _MATCHING, "letters", "mostly words", "words"),
        ],
    ),
}
