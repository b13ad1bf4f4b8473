"""The table of a run, and its plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from benchmarks.adaptive.changes import show_changes
from benchmarks.adaptive.session import BATCHES, BYTES, OWN, RATE, RATIO, SINGLE, STOPPED
from benchmarks.runner.benchmark import Experiment
from benchmarks.runner.plots import OTHER, plain, short, with_legend
from benchmarks.runner.plots import OWN as COLOUR
from benchmarks.runner.report import Measurement, Report, of_experiment
from benchmarks.runner.tables import number, table_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS: Final = (
    (BATCHES, "µs an event,\nbatches"),
    (SINGLE, "µs an event,\na call"),
    (RATE, "subscriptions\nadded a second"),
    (BYTES, "bytes a\nsubscription"),
)
_KINDS: Final = (BATCHES, SINGLE)


def show(report: Report, experiments: Mapping[str, Experiment[Any]]) -> None:
    """Print one table, a row for each workload and matcher, and what became of the matchers as events changed."""
    console = Console(width=130)
    headings = (*(heading for _, heading in _COLUMNS), "ratio,\nbatches", "ratio,\na call")
    table = table_of(("workload", "matcher"), headings)
    for column in table.columns[:3]:
        column.no_wrap = True
    for name, experiment in experiments.items():
        found = of_experiment(report.measurements, name)
        cells = {(str(one.details["matcher"]), one.name): one.value for one in found}
        for place, label in enumerate(_ranked(cells)):
            table.add_row(
                "" if place else experiment.title, label, *_row(cells, label), *_ratios(found, label)
            )
    means = [_mean_and_worst(report.measurements, kind) for kind in _KINDS]
    if all(means):
        table.add_section()
        table.add_row("all", "mean; worst", *[""] * len(_COLUMNS), *means)
    console.print(table)
    _show_drift(report, experiments, console)
    show_changes(report.measurements, experiments, console)
    console.print(f"left out: {report.parameters['left_out']}", highlight=False, soft_wrap=True)


def _ranked(cells: Mapping[tuple[str, str], float]) -> list[str]:
    """Return the matchers of a workload: `adaptive`, then the others from the fastest to the slowest."""
    labels = {label for label, name in cells if name in (BATCHES, STOPPED)}
    taken = {label: cells.get((label, BATCHES), cells.get((label, STOPPED), 0.0)) for label in labels}
    stopped = {label for label in labels if (label, BATCHES) not in cells}
    return sorted(labels, key=lambda label: (label != OWN, label in stopped, taken[label]))


def _row(cells: Mapping[tuple[str, str], float], label: str) -> list[str]:
    found = {name: cells.get((label, name)) for name, _ in _COLUMNS}
    row = ["-" if value is None else number(value) for value in found.values()]
    stopped = cells.get((label, STOPPED))
    return row if stopped is None else [f"stopped {number(stopped)}", *row[1:]]


def _ratios(found: Sequence[Measurement], label: str) -> list[str]:
    ratios = {one.details["kind"]: one.value for one in found if one.name == RATIO}
    return [f"{ratios[kind]:.2f}" if label == OWN and kind in ratios else "" for kind in _KINDS]


def _mean_and_worst(measurements: Sequence[Measurement], kind: str) -> str:
    """Return the geometric mean of the ratios and the worst of them; nothing, if there are none."""
    ratios = [one.value for one in measurements if one.name == RATIO and one.details["kind"] == kind]
    if not ratios:
        return ""
    return f"{exp(sum(map(log, ratios)) / len(ratios)):.2f}; {max(ratios):.2f}"


def _show_drift(report: Report, experiments: Mapping[str, Experiment[Any]], console: Console) -> None:
    for name, experiment in experiments.items():
        found = [
            one
            for one in of_experiment(report.measurements, name)
            if "change" in one.name or "over" in one.name
        ]
        for label in dict.fromkeys(str(one.details["matcher"]) for one in found):
            own = [one for one in found if one.details["matcher"] == label]
            after = ", ".join(number(one.value) for one in own if one.name == "after the change")
            single = {one.name: number(one.value) for one in own}
            console.print(
                f"{experiment.title}: {label} takes {single['before the change']} µs an event before the change;"
                f" by {_step(own)} events after it: {after}; {single['best after the change']} at best;"
                f" near that after {single['events until it is over']} events",
                highlight=False,
                soft_wrap=True,
            )


def _step(found: Sequence[Measurement]) -> str:
    return number(min(float(one.details["at"]) for one in found if one.name == "after the change"))


def draw_ratios(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw the ratio of each workload as two bars, on a logarithmic axis."""
    found = [one for one in measurements if one.name == RATIO]
    if not found:
        return False
    names = list(dict.fromkeys(str(one.details["experiment"]) for one in found))
    figure.set_size_inches(7.6, 0.36 * len(names) + 1.6)
    axes = figure.subplots()
    for kind, shift, colour in zip(_KINDS, (-0.2, 0.2), (COLOUR, OTHER), strict=True):
        ratios = {str(one.details["experiment"]): one.value for one in found if one.details["kind"] == kind}
        places = [names.index(name) + shift for name in ratios]
        values = list(ratios.values())
        bars = axes.barh(places, [v - 1 for v in values], 0.36, left=1, color=colour, label=kind)
        axes.bar_label(bars, [short(value) for value in values], fontsize=6, padding=3, color="#444444")
    axes.set_xscale("log")
    axes.axvline(1.0, color="#333333", linewidth=0.8)
    axes.margins(x=0.12, y=0.01)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.invert_yaxis()
    axes.set_xlabel("times the best of the others; below 1, `adaptive` is faster")
    plain(axes.xaxis)
    return with_legend(figure)
