"""How all plots look, and how they become files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from benchmarks.runner.report import Measurement
from tocsin.model.errors import TocsinError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Panel = TypeVar("Panel")

SizedPlot: TypeAlias = "tuple[tuple[float, float], Callable[[Figure, Sequence[Measurement]], bool]]"
"""A plot's width and height in inches, and what draws it and tells whether there was anything to draw."""

_FEW_POWERS: Final = 100  # an axis that spans less has too few labels, were there only powers of ten

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


def draw_all(plots: Mapping[str, SizedPlot], measurements: Sequence[Measurement], folder: Path) -> list[Path]:
    """Write plots as PNG files, each by its name, and return them; raise `TocsinError` without matplotlib."""
    require_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415 - an optional part
    from matplotlib.figure import Figure  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with mpl.rc_context(_STYLE):
        for name, (size, plot) in plots.items():
            figure = Figure(figsize=size, dpi=160)
            if plot(figure, measurements):
                path = folder / f"{name}.png"
                figure.savefig(path)
                written.append(path)
    return written


def require_matplotlib() -> None:
    """Raise `TocsinError` if there is no matplotlib."""
    if find_spec("matplotlib") is None:
        raise TocsinError("plots need matplotlib; install it with: pip install 'tocsin[bench]'")


def plain(axis: Axis) -> None:
    """Write numbers out, for few readers think in powers."""
    low, high = axis.get_view_interval()
    if axis.get_scale() == "log" and high < _FEW_POWERS * low:
        from matplotlib.ticker import LogLocator  # noqa: PLC0415 - an optional part

        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 10 else f"{value:g}")
    axis.set_minor_formatter("")


def with_legend(figure: Figure) -> bool:
    """Add a legend above the plots, if anything is drawn; tell whether it is."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        found.update(zip(labels, handles, strict=True))
    if found:
        figure.legend(list(found.values()), list(found), loc="outside upper left", ncols=len(found))
    return bool(found)


def side_by_side(
    panels: Sequence[Panel], draw: Callable[[Axes, Panel, Sequence[Measurement]], None]
) -> SizedPlot:
    """Return the plot of panels side by side, each of which is drawn on axes of its own."""

    def plot(figure: Figure, measurements: Sequence[Measurement]) -> bool:
        grid = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(grid, panels, strict=True):
            draw(axes, panel, measurements)
        return with_legend(figure)

    return (max(3.4 * len(panels) + 1.2, 7.2), 3.2), plot


def short(value: float) -> str:
    """Return a figure as a bar's label."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def place_label(value: float) -> str:
    """Return a number on an axis as short as it can be read."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}K" if value >= 1e3 else f"{value:g}"
