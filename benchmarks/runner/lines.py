"""Lines of matchers' figures, alike in all plots: a colour and a mark for each matcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from benchmarks.runner.drawing import plain
from benchmarks.runner.report import Measurement

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: Final = {
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
}
_MARKS: Final = dict(zip(COLOURS, "Pdsv^DoXh<>*", strict=True))


def draw_lines(
    axes: Axes,
    measurements: Sequence[Measurement],
    value: Callable[[Measurement], float | None] = lambda one: one.value,
) -> bool:
    """Draw a line for each matcher, from what it was measured at to the value; tell whether there are any."""
    for label in labels(measurements):
        points = [
            (float(one.details["at"]), figure)
            for one in measurements
            if one.details["matcher"] == label and (figure := value(one)) is not None
        ]
        if points:
            along, up = zip(*points, strict=True)
            colour, marker = COLOURS.get(label), _MARKS.get(label, "o")
            axes.plot(along, up, color=colour, marker=marker, label=label)
    return bool(axes.lines)


def of(measurements: Sequence[Measurement], experiment: str, name: str) -> list[Measurement]:
    """Return the measurements of one experiment that have this name."""
    return [one for one in measurements if one.details["experiment"] == experiment and one.name == name]


def labels(measurements: Sequence[Measurement]) -> list[str]:
    """Return the matchers, in the order of the legend."""
    found = dict.fromkeys(str(one.details["matcher"]) for one in measurements)
    order = list(COLOURS)
    return sorted(found, key=lambda label: order.index(label) if label in order else len(order))


def detail(one: Measurement, name: str) -> float | None:
    """Return a detail that is a positive number, or None."""
    value = one.details.get(name)
    return value if isinstance(value, float) and value > 0 else None


def logarithmic(axes: Axes, title: str, along: str) -> None:
    """Give a plot two logarithmic axes, with numbers written out."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain(axes.xaxis)
    plain(axes.yaxis)
    axes.set_title(title)
    axes.set_xlabel(along)
