"""Plots as rows of a table: panels of lines, bars, and how they become files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.runner.report import Measurement, of_experiment
from tocsin.model.errors import TocsinError
from tocsin.model.installation import install_hint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Plot: TypeAlias = "Callable[[Figure, Sequence[Measurement]], bool]"
"""Draws measurements on an empty figure; returns whether there was anything to draw."""

COLOURS: Final = {  # one colour for one contender in all plots
    "opindex": "#b2182b",
    "opindex-bs": "#f4a582",
    "counting": "#7f7f7f",
    "propagation": "#e69f00",
    "propagation-wp": "#d55e00",
    "static": "#009e73",
    "dynamic": "#0072b2",
    "dynamic, no change": "#cc79a7",
    "amkh": "#56b4e9",
    "k-index": "#666633",
    "be-tree": "#542788",
    "points": "#1b7837",
    "S-UN": "#b2182b",
    "S-MN": "#e69f00",
    "CN": "#7f7f7f",
    "CN+": "#cc79a7",
    "S-CN": "#0072b2",
    "DS-CN": "#009e73",
    "multicast": "#e69f00",
    "unicast": "#b2182b",
    "non-ignorable": "#0072b2",
    "as they come": "#7f7f7f",
    "read": "#0072b2",
    "encode": "#56b4e9",
    "match": "#009e73",
    "notify": "#e69f00",
    "the rest": "#b3b3b3",
}
OWN: Final = "#0072b2"
OTHER: Final = "#7f7f7f"
PALETTE: Final = (OWN, "#56b4e9", OTHER)

_MARKERS: Final = "Pdsv^DoXh<>*"
_MAGNITUDE: Final = 12.0  # values that differ by more are drawn on a logarithmic axis
_SPREAD: Final = 15.0  # places that differ by more, too, unless they are evenly spaced
_FEW_POWERS: Final = 100.0  # an axis that spans less needs labels between the powers of ten
_MOST_TICKS: Final = 8  # places that are named on an axis

_STYLE: Final[Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.columnspacing": 1.4,
    "legend.handletextpad": 0.5,
    "figure.constrained_layout.use": True,
}


class Panel(Struct, frozen=True):
    """A line for each contender: a measurement of an experiment over the places where it was taken.

    An experiment `name*` stands for a panel for each experiment whose name begins so.
    """

    experiment: str
    measurement: str
    along: str
    title: str
    kind: str = ""  # of events
    detail: str = ""  # drawn instead of the value
    by: str = ""  # the measurement along the axis instead of the place
    labels: tuple[str, ...] = ()  # the only contenders; all, if empty
    without: tuple[str, ...] = ()  # contenders that are not drawn


class Bars(Struct, frozen=True):
    """A group of bars for each value of a detail, and in it a bar for each value of another."""

    experiment: str
    measurement: str  # any, if empty
    title: str
    unit: str = ""  # of the measurements; any, if empty
    group: str = "at"
    label: str = "matcher"
    names: Mapping[str, str] = {}  # of groups, where they are not their values


def draw(plots: Mapping[str, Plot], measurements: Sequence[Measurement], folder: Path) -> list[Path]:
    """Write plots as PNG files, each by its name, and return them; raise `TocsinError` without matplotlib."""
    require_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415 - an optional part
    from matplotlib.figure import Figure  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with mpl.rc_context(_STYLE):
        for name, plot in plots.items():
            figure = Figure(dpi=160)
            if plot(figure, measurements):
                path = folder / f"{name}.png"
                figure.savefig(path)
                written.append(path)
    return written


def require_matplotlib() -> None:
    """Raise `TocsinError` if there is no matplotlib."""
    if find_spec("matplotlib") is None:
        raise TocsinError(f"plots need matplotlib; install it with {install_hint('bench')}")


def lines(*panels: Panel, widest: int = 4) -> Plot:
    """Return the plot of panels in rows of `widest`; panels of a row that show the same measurement share one scale."""

    def plot(figure: Figure, measurements: Sequence[Measurement]) -> bool:
        shown = [one for panel in panels for one in _expanded(panel, measurements)]
        rows = [shown[first : first + widest] for first in range(0, len(shown), widest)] or [[]]
        width = max(len(rows[0]), 1)
        figure.set_size_inches(max(3.0 * width + 0.8, 6.4), 2.7 * len(rows) + 0.5)
        for axes_of_row, row in zip(figure.subplots(len(rows), width, squeeze=False), rows, strict=True):
            for axes in axes_of_row[len(row) :]:
                axes.set_axis_off()
            alike: dict[str, list[Axes]] = {}
            for axes, panel in zip(axes_of_row, row, strict=False):
                axes.set_ylabel(_draw_panel(axes, panel, measurements))
                alike.setdefault(f"{panel.measurement}{panel.detail}", []).append(axes)
            for shared in alike.values():
                _set_scale(shared)
        return with_legend(figure)

    return plot


def _expanded(panel: Panel, measurements: Sequence[Measurement]) -> list[Panel]:
    """Return a panel for each experiment that it stands for."""
    if not panel.experiment.endswith("*"):
        return [panel]
    names = dict.fromkeys(str(one.details["experiment"]) for one in measurements)
    beginning = panel.experiment[:-1]
    return [
        replace(panel, experiment=name, title=f"{panel.title}{name.removeprefix(beginning)}")
        for name in names
        if name.startswith(beginning)
    ]


def _draw_panel(axes: Axes, panel: Panel, measurements: Sequence[Measurement]) -> str:
    """Draw a panel's lines; return the name of its values."""
    chosen = [
        one
        for one in of_experiment(measurements, panel.experiment, panel.measurement)
        if one.details.get("kind", "") == panel.kind
    ]
    along = {
        (one.details["matcher"], one.details["at"]): one.value
        for one in (of_experiment(measurements, panel.experiment, panel.by) if panel.by else ())
    }
    found: dict[str, list[tuple[float, float]]] = {}
    for one in chosen:
        label, at = str(one.details["matcher"]), one.details["at"]
        value = one.details.get(panel.detail, 0.0) if panel.detail else one.value
        if label in panel.without or (panel.labels and label not in panel.labels):
            continue
        if isinstance(value, float) and (value > 0 or not panel.detail):
            found.setdefault(label, []).append((along.get((label, at), float(at)), value))
    for label in _in_order(found):
        if _is_compared(label, found):
            marker = _MARKERS[list(COLOURS).index(label) % len(_MARKERS)] if label in COLOURS else "o"
            axes.plot(*zip(*found[label], strict=True), color=COLOURS.get(label), marker=marker, label=label)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.along)
    places = sorted({place for line in axes.lines for place in np.asarray(line.get_xdata()).tolist()})
    if not places:
        return ""
    if places[0] > 0 and places[-1] / places[0] > _SPREAD and not _is_even(places):
        axes.set_xscale("log")
    if len(places) <= _MOST_TICKS and not panel.by:
        axes.set_xticks(places, [place_label(place) for place in places])
        axes.minorticks_off()
    else:
        axes.xaxis.set_major_formatter(lambda value, _: place_label(value))
    return panel.detail or ", ".join(filter(None, (panel.measurement, chosen[0].unit)))


def _in_order(labels: Mapping[str, object]) -> list[str]:
    """Return contenders in the order of the legend."""
    order = list(COLOURS)
    return sorted(labels, key=lambda label: order.index(label) if label in order else len(order))


def _is_compared(label: str, found: Mapping[str, Sequence[tuple[float, float]]]) -> bool:
    """Return whether a contender has a line, or a point where others were measured too."""
    others = {place for other, points in found.items() if other != label for place, _ in points}
    return len(found) == 1 or len(found[label]) > 1 or found[label][0][0] in others


def _is_even(places: Sequence[float]) -> bool:
    """Return whether places are evenly spaced, so that a linear axis has room for their labels."""
    gaps = [after - before for before, after in pairwise(places)]
    return max(gaps) < 2 * min(gaps)


def _set_scale(panels: Sequence[Axes]) -> None:
    """Give panels one scale: logarithmic if their values differ by much, else from zero."""
    drawn = np.concatenate([np.empty(0), *(line.get_ydata() for axes in panels for line in axes.lines)])
    if not drawn.any():
        return
    least, most = float(drawn.min()), float(drawn.max())
    for axes in panels:
        if most <= _MAGNITUDE * max(least, 1e-300 if least > 0 else 1.0):
            axes.set_ylim(0, most * 1.1)
        elif least > 0:
            axes.set_yscale("log")
            axes.set_ylim(least / 1.6, most * 1.6)
        else:  # a logarithmic axis cannot show zero
            axes.set_yscale("symlog", linthresh=1.0)
            axes.set_ylim(0, most * 1.6)
        plain(axes.yaxis)
    for axes in panels[1:]:
        axes.tick_params(labelleft=False)
        axes.set_ylabel("")


def grouped_bars(*panels: Bars) -> Plot:
    """Return a plot of groups of bars, side by side, with the lowest and the highest run where they are known."""

    def plot(figure: Figure, measurements: Sequence[Measurement]) -> bool:
        figure.set_size_inches(max(4.6 * len(panels), 8.0), 3.6)
        for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            chosen = of_experiment(measurements, panel.experiment, panel.measurement, panel.unit)
            cells = {(_detail(one, panel.label), _detail(one, panel.group)): one for one in chosen}
            groups = list(dict.fromkeys(group for _, group in cells))
            labels = _in_order(dict.fromkeys(label for label, _ in cells))
            for number, label in enumerate(labels):
                mine = {place: cells.get((label, group)) for place, group in enumerate(groups)}
                bars = {place: one for place, one in mine.items() if one is not None}
                shift = (number - (len(labels) - 1) / 2) * 0.8 / len(labels)
                colour = COLOURS.get(label, PALETTE[number % len(PALETTE)])
                _draw_bars(axes, bars, shift, 0.74 / len(labels), colour=colour, label=label)
            values = [one.value for one in chosen]
            if values and max(values) > _MAGNITUDE * max(min(values), 1e-9) > 0:
                axes.set_yscale("log")
            plain(axes.yaxis)
            axes.set_title(panel.title)
            axes.set_xticks(range(len(groups)), [panel.names.get(group, group) for group in groups])
            axes.tick_params(axis="x", length=0)
            axes.grid(visible=False, axis="x")
            axes.margins(y=0.15)
            axes.set_ylabel(chosen[0].unit if chosen else "")
        return with_legend(figure)

    return plot


def _detail(one: Measurement, name: str) -> str:
    return one.name if name == "name" else str(one.details[name])


def _draw_bars(
    axes: Axes, bars: Mapping[int, Measurement], shift: float, width: float, *, colour: str, label: str
) -> None:
    places, values = [place + shift for place in bars], [one.value for one in bars.values()]
    drawn = axes.bar(places, values, width, color=colour, label=label)
    axes.bar_label(drawn, [short(value) for value in values], fontsize=6, padding=4, color="#444444")
    if all("lowest" in one.details for one in bars.values()):
        runs = [
            [one.value - float(one.details["lowest"]) for one in bars.values()],
            [float(one.details["highest"]) - one.value for one in bars.values()],
        ]
        axes.errorbar(places, values, yerr=runs, fmt="none", ecolor="#333333", elinewidth=0.8, capsize=2)


def ranked_bars(
    experiment: str,
    measurement: str,
    title: str,
    *,
    unit: str = "",
    label: Callable[[Measurement], str] = lambda one: str(one.details["matcher"]),
    own: tuple[str, ...] = ("Tocsin", "Engine", "point index", "points", "match"),
) -> Plot:
    """Return a plot of a horizontal bar for each contender, at the largest place; `own` begin the names of Tocsin's."""

    def plot(figure: Figure, measurements: Sequence[Measurement]) -> bool:
        found = [one for one in of_experiment(measurements, experiment, measurement, unit) if one.value > 0]
        if not found:
            return False
        last = max(float(one.details.get("at", 0)) for one in found)
        found = [one for one in found if one.details.get("at", 0) == last]
        figure.set_size_inches(7.0, 3.4)
        axes = figure.subplots()
        values = [one.value for one in found]
        bars = axes.barh([label(one) for one in found], values, height=0.7)
        for bar, one in zip(bars, found, strict=True):
            colour = OWN if label(one).startswith(own) else OTHER
            bar.set_color(colour)
            if "extrapolated" in one.name:  # not to be taken for a measurement
                bar.set(facecolor="white", edgecolor=colour, hatch="////")
        axes.bar_label(bars, [short(value) for value in values], padding=3)
        axes.invert_yaxis()
        axes.set_title(f"{title}{f', at {place_label(last)}' if last else ''}")
        axes.set_xlabel(found[0].unit)
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 3, max(values) * 8)
        axes.xaxis.set_major_formatter(lambda value, _: place_label(value))
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        return True

    return plot


def plain(axis: Axis) -> None:
    """Write numbers out, since few readers think in powers."""
    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and high < _FEW_POWERS * low:
        from matplotlib.ticker import LogLocator  # noqa: PLC0415 - an optional part

        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 10 else f"{value:g}")
    axis.set_minor_formatter("")


def with_legend(figure: Figure) -> bool:
    """Add a legend above the panels if anything is drawn; return whether it is."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        found.update(zip(labels, handles, strict=True))
    if found:
        columns = max(int(figure.get_figwidth() / 1.5), 1)
        figure.legend(list(found.values()), list(found), loc="outside upper left", ncols=columns)
    return bool(found)


def short(value: float) -> str:
    """Return a value as a bar's label."""
    return f"{value:.2g}" if value < 100 else place_label(float(f"{value:.3g}"))


def place_label(value: float) -> str:
    """Return a number as short as it can be read.

    >>> place_label(20_000), place_label(1_500_000), place_label(0.8)
    ('20K', '1.5M', '0.8')
    """
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}K" if value >= 1e3 else f"{value:g}"
