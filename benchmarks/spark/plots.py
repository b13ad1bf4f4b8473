"""Plots of what Spark was measured at."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.runner.drawing import SizedPlot, draw_all, plain, short, with_legend
from benchmarks.runner.report import Measurement, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_OWN: Final = "#0072b2"
_SECOND: Final = "#56b4e9"
_OTHER: Final = "#d55e00"
_GREY: Final = "#7f7f7f"


def draw(report: Report, folder: Path) -> list[Path]:
    """Write the plots of a report as PNG files, and return them; raise `TocsinError` without matplotlib."""
    return draw_all(_PLOTS, report.measurements, folder)


def _joins(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw the seconds from tables of events and subscriptions to the notifications."""
    chosen = [one for one in _of(measurements, "joins") if one.unit == "s"]
    axes = figure.subplots()
    bars = axes.barh([_written(one) for one in chosen], [one.value for one in chosen], height=0.6)
    for bar, one in zip(bars, chosen, strict=True):
        bar.set_color(_OWN if one.name.startswith("match") else _OTHER)
        if "extrapolated" in one.name:  # not to be taken for a measurement
            bar.set(facecolor="white", edgecolor=_OTHER, hatch="////")
    axes.bar_label(bars, fmt=lambda value: f"{short(value)} s", fontsize=8, padding=3, color="#444444")
    axes.invert_yaxis()
    axes.set_xscale("log")
    plain(axes.xaxis)
    axes.margins(x=0.15)
    if chosen:
        axes.set_xlim(left=10 ** floor(log10(min(one.value for one in chosen))))
        size = chosen[0].details
        axes.set_title(f"W0: {size['subscriptions']:,} subscriptions, {size['events']:,} events, two cores")
    axes.set_xlabel("seconds, end to end")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    return bool(chosen)


def _rates(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw the events a second of the engine and of Spark, and those of an index in shards."""
    left, right = figure.subplots(1, 2, sharey=True)
    compared = [one for one in _of(measurements, "overhead") if one.unit == "events/s"]
    spread = [one for one in _of(measurements, "shards") if one.unit == "events/s"]
    labels = list(dict.fromkeys(one.name for one in compared))
    for number, source in enumerate(dict.fromkeys(str(one.details["of"]) for one in compared)):
        chosen = [one for one in compared if one.details["of"] == source]
        _bars(left, chosen, number - 0.5, colour=(_OWN, _SECOND)[number % 2], label=f"events from {source}")
    left.set_xticks(range(len(labels)), labels)
    left.legend(loc="upper right", fontsize=8)
    _bars(right, spread, 0, colour=_OWN)
    right.set_xticks(range(len(spread)), [str(one.details["of"]) for one in spread])
    if compared:
        left.set_title(f"W0, {compared[0].details['subscriptions']:,} subscriptions")
    if spread:
        right.set_title(f"the same in shards, {spread[0].name}")
    for axes in (left, right):
        axes.tick_params(axis="x", length=0)
        axes.grid(visible=False, axis="x")
        axes.margins(y=0.22)
    plain(left.yaxis)
    left.set_ylabel("events a second")
    return bool(compared)


def _costs(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw what the parts of an event's way cost."""
    chosen = [one for one in _of(measurements, "costs") if one.details["of"] == "an event"]
    axes = figure.subplots()
    begin = 0.0
    for one, colour in zip(chosen, (_GREY, _SECOND, _OWN), strict=False):
        bar = axes.barh([""], [one.value], left=begin, height=0.5, color=colour, label=one.name)
        axes.bar_label(bar, labels=[f"{one.value:,.0f}"], label_type="center", color="white", fontsize=8)
        begin += one.value
    if chosen:
        axes.set_title("an event on one core, part by part")
    axes.set_xlabel("ns")
    plain(axes.xaxis)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    return with_legend(figure)


_PLOTS: Final[dict[str, SizedPlot]] = {
    "joins": ((7.0, 3.4), _joins),
    "rates": ((8.0, 3.6), _rates),
    "costs": ((7.0, 1.9), _costs),
}


def _bars(
    axes: Axes, measurements: Sequence[Measurement], shift: float, *, colour: str, label: str | None = None
) -> None:
    """Draw the medians as bars, with the lowest and the highest run as a line."""
    width = 0.6 if shift == 0 else 0.4
    places = [place + shift * width for place in range(len(measurements))]
    values = [one.value for one in measurements]
    runs = [
        [one.value - float(one.details["lowest"]) for one in measurements],
        [float(one.details["highest"]) - one.value for one in measurements],
    ]
    axes.bar(places, values, width * 0.92, color=colour, label=label)
    axes.errorbar(places, values, yerr=runs, fmt="none", ecolor="#333333", elinewidth=0.8, capsize=2)
    for place, one in zip(places, measurements, strict=True):
        above = (place, float(one.details["highest"]))
        axes.annotate(
            short(one.value),
            above,
            (0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=7,
            color="#444444",
        )


def _of(measurements: Sequence[Measurement], experiment: str) -> list[Measurement]:
    return [one for one in measurements if one.details["experiment"] == experiment]


def _written(one: Measurement) -> str:
    """Return how a bar of the joins is called."""
    if one.name == "match, index included":
        return f"{one.name}\n(subscriptions from {one.details['of']})"
    return one.name.replace(", extrapolated", "\n(extrapolated)")
