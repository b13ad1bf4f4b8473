"""Plots in the shape of the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tocsin.bench.drawing import SizedPlot, draw_all, plain, short, with_legend
from tocsin.bench.report import Measurement, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_COLOURS: Final = {
    "counting": "#7f7f7f",
    "propagation": "#e69f00",
    "propagation-wp": "#d55e00",
    "static": "#009e73",
    "dynamic": "#0072b2",
    "dynamic, no change": "#cc79a7",
}
_MARKS: Final = dict(zip(_COLOURS, "sv^DoX", strict=True))
_PER_EVENT: Final = "time per event (µs)"


def draw(report: Report, folder: Path) -> list[Path]:
    """Write the plots of a report as PNG files, and return them; raise `TocsinError` without matplotlib."""
    return draw_all(_PLOTS, report.measurements, folder)


def _lines(
    axes: Axes, measurements: Sequence[Measurement], value: Callable[[Measurement], float | None]
) -> bool:
    """Draw a line for each matcher, from what it was measured at to the value; tell whether there are any."""
    for label in _labels(measurements):
        points = [
            (float(one.details["at"]), figure)
            for one in measurements
            if one.details["matcher"] == label and (figure := value(one)) is not None
        ]
        if points:
            along, up = zip(*points, strict=True)
            colour, marker = _COLOURS.get(label), _MARKS.get(label, "o")
            axes.plot(along, up, color=colour, marker=marker, label=label)
    return bool(axes.lines)


def _sizes(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Figure 3a, in two variants."""
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, experiment, title in (
        (left, "subscriptions", "W0: five equalities"),
        (right, "subscriptions with ranges", "W0: two equalities, three ranges"),
    ):
        _lines(axes, _of(measurements, experiment, "time per event"), lambda one: one.value)
        _logarithmic(axes, title, "subscriptions")
    left.set_ylabel(_PER_EVENT)
    return with_legend(figure)


def _phases(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    chosen = _of(measurements, "subscriptions", "time per event")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, phase, title in (
        (left, "phase 1", "phase 1: predicates"),
        (right, "phase 2", "phase 2: subscriptions"),
    ):
        _lines(axes, chosen, lambda one, phase=phase: _detail(one, phase))  # type: ignore[misc]
        _logarithmic(axes, f"W0, {title}", "subscriptions")
    left.set_ylabel(_PER_EVENT)
    return with_legend(figure)


def _operators(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Figure 3b."""
    chosen = _of(measurements, "operators", "time per event")
    axes = figure.subplots()
    labels = _labels(chosen)
    workloads = list(dict.fromkeys(str(one.details["at"]) for one in chosen))
    width = 0.8 / max(len(labels), 1)
    for number, label in enumerate(labels):
        values = {str(one.details["at"]): one.value for one in chosen if one.details["matcher"] == label}
        places = [place + (number - (len(labels) - 1) / 2) * width for place in range(len(workloads))]
        bars = axes.bar(
            places, [values[name] for name in workloads], width * 0.92, color=_COLOURS.get(label), label=label
        )
        axes.bar_label(bars, fmt=short, fontsize=7, padding=1.5, color="#444444")
    axes.set_yscale("log")
    plain(axes.yaxis)
    axes.set_title("mix of operators")
    axes.set_xticks(range(len(workloads)), [_DESCRIBED.get(name, name) for name in workloads])
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    axes.margins(y=0.12)
    axes.set_ylabel(_PER_EVENT)
    return with_legend(figure)


def _memory(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    axes = figure.subplots()
    _lines(axes, _of(measurements, "subscriptions", "memory per subscription"), lambda one: one.value)
    axes.set_xscale("log")
    plain(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_title("W0: memory in the matcher")
    axes.set_xlabel("subscriptions")
    axes.set_ylabel("bytes per subscription")
    return with_legend(figure)


def _loading(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    axes = figure.subplots()
    _lines(axes, _of(measurements, "subscriptions", "loading rate"), lambda one: _detail(one, "seconds"))
    _logarithmic(axes, "W0: loading", "subscriptions")
    axes.set_ylabel("loading time (s)")
    return with_legend(figure)


def _shapes(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw what the number of values and the number of predicates do."""
    left, right = figure.subplots(1, 2, sharey=True)
    _lines(left, _of(measurements, "domain", "time per event"), lambda one: one.value)
    _logarithmic(left, "number of values", "values an attribute may have")
    left.set_ylabel(_PER_EVENT)
    chosen = _of(measurements, "predicates", "time per event")
    _lines(right, chosen, lambda one: one.value)
    right.set_title("number of predicates")
    right.set_xlabel("predicates in a subscription")
    right.set_xticks(sorted({int(one.details["at"]) for one in chosen}))
    return with_legend(figure)


def _over_time(experiment: str, title: str) -> Callable[[Figure, Sequence[Measurement]], bool]:
    """Figures 4a and 4b."""

    def plot(figure: Figure, measurements: Sequence[Measurement]) -> bool:
        axes = figure.subplots()
        chosen = _of(measurements, experiment, "time per event")
        _lines(axes, chosen, lambda one: one.value)
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.set_title(title)
        axes.set_xlabel("hours, at 50 subscriptions replaced a second")
        axes.set_ylabel(_PER_EVENT)
        return with_legend(figure)

    return plot


_DESCRIBED: Final = {
    "W0": "W0\n5 equalities",
    "W1": "W1\n4 equalities, 1 range",
    "W2": "W2\n4 equalities, 5 ranges",
    "W0 with ranges": "W0 with ranges\n2 equalities, 3 ranges",
}

_PLOTS: Final[dict[str, SizedPlot]] = {
    "time_per_event": ((8.0, 3.6), _sizes),
    "phases": ((8.0, 3.6), _phases),
    "operators": ((8.0, 3.6), _operators),
    "memory": ((6.4, 3.4), _memory),
    "loading": ((6.4, 3.4), _loading),
    "values_and_predicates": ((8.0, 3.6), _shapes),
    "drift": ((6.4, 3.4), _over_time("drift", "new subscriptions use the other half of the names")),
    "skew": ((6.4, 3.4), _over_time("skew", "fixed attributes come down to two values")),
}


def _of(measurements: Sequence[Measurement], experiment: str, name: str) -> list[Measurement]:
    return [one for one in measurements if one.details["experiment"] == experiment and one.name == name]


def _labels(measurements: Sequence[Measurement]) -> list[str]:
    """Return the matchers, in the order of the legend."""
    found = dict.fromkeys(str(one.details["matcher"]) for one in measurements)
    order = list(_COLOURS)
    return sorted(found, key=lambda label: order.index(label) if label in order else len(order))


def _detail(one: Measurement, name: str) -> float | None:
    """Return a detail that is a positive number, or None."""
    value = one.details.get(name)
    return value if isinstance(value, float) and value > 0 else None


def _logarithmic(axes: Axes, title: str, along: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain(axes.xaxis)
    plain(axes.yaxis)
    axes.set_title(title)
    axes.set_xlabel(along)
