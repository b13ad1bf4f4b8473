"""Plots in the shape of the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.runner.drawing import SizedPlot, draw_all, plain, short, with_legend
from benchmarks.runner.lines import COLOURS, detail, draw_lines, labels, logarithmic, of
from benchmarks.runner.report import Measurement, Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PER_EVENT: Final = "time per event (µs)"


def draw(report: Report, folder: Path) -> list[Path]:
    """Write the plots of a report as PNG files, and return them; raise `TocsinError` without matplotlib."""
    return draw_all(_PLOTS, report.measurements, folder)


def _sizes(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Figure 3a, in two variants."""
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, experiment, title in (
        (left, "subscriptions", "W0: five equalities"),
        (right, "subscriptions with ranges", "W0: two equalities, three ranges"),
    ):
        draw_lines(axes, of(measurements, experiment, "time per event"))
        logarithmic(axes, title, "subscriptions")
    left.set_ylabel(_PER_EVENT)
    return with_legend(figure)


def _phases(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    chosen = of(measurements, "subscriptions", "time per event")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, phase, title in (
        (left, "phase 1", "phase 1: predicates"),
        (right, "phase 2", "phase 2: subscriptions"),
    ):
        draw_lines(axes, chosen, lambda one, phase=phase: detail(one, phase))  # type: ignore[misc]
        logarithmic(axes, f"W0, {title}", "subscriptions")
    left.set_ylabel(_PER_EVENT)
    return with_legend(figure)


def _operators(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Figure 3b."""
    chosen = of(measurements, "operators", "time per event")
    axes = figure.subplots()
    matchers = labels(chosen)
    workloads = list(dict.fromkeys(str(one.details["at"]) for one in chosen))
    width = 0.8 / max(len(matchers), 1)
    for number, label in enumerate(matchers):
        values = {str(one.details["at"]): one.value for one in chosen if one.details["matcher"] == label}
        places = [place + (number - (len(matchers) - 1) / 2) * width for place in range(len(workloads))]
        bars = axes.bar(
            places, [values[name] for name in workloads], width * 0.92, color=COLOURS.get(label), label=label
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
    draw_lines(axes, of(measurements, "subscriptions", "memory per subscription"))
    axes.set_xscale("log")
    plain(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_title("W0: memory in the matcher")
    axes.set_xlabel("subscriptions")
    axes.set_ylabel("bytes per subscription")
    return with_legend(figure)


def _loading(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    axes = figure.subplots()
    draw_lines(axes, of(measurements, "subscriptions", "loading rate"), lambda one: detail(one, "seconds"))
    logarithmic(axes, "W0: loading", "subscriptions")
    axes.set_ylabel("loading time (s)")
    return with_legend(figure)


def _shapes(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw what the number of values and the number of predicates do."""
    left, right = figure.subplots(1, 2, sharey=True)
    draw_lines(left, of(measurements, "domain", "time per event"))
    logarithmic(left, "number of values", "values an attribute may have")
    left.set_ylabel(_PER_EVENT)
    chosen = of(measurements, "predicates", "time per event")
    draw_lines(right, chosen)
    right.set_title("number of predicates")
    right.set_xlabel("predicates in a subscription")
    right.set_xticks(sorted({int(one.details["at"]) for one in chosen}))
    return with_legend(figure)


def _over_time(experiment: str, title: str) -> Callable[[Figure, Sequence[Measurement]], bool]:
    """Figures 4a and 4b."""

    def plot(figure: Figure, measurements: Sequence[Measurement]) -> bool:
        axes = figure.subplots()
        chosen = of(measurements, experiment, "time per event")
        draw_lines(axes, chosen)
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
