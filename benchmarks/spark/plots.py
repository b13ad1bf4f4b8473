"""Plots of the measurements on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from benchmarks.runner.plots import PALETTE, Bars, Plot, grouped_bars, plain, ranked_bars, with_legend
from benchmarks.runner.report import Measurement, of_experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _joined(one: Measurement) -> str:
    """Return the label of a bar of the joins."""
    if one.name == "match, index included":
        return f"{one.name}\n(subscriptions from {one.details['of']})"
    return one.name.replace(", extrapolated", "\n(extrapolated)")


def _costs(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw the costs of the parts of an event's way, one after another."""
    chosen = [one for one in of_experiment(measurements, "costs") if one.details["of"] == "an event"]
    figure.set_size_inches(7.0, 1.9)
    axes = figure.subplots()
    begin = 0.0
    for one, colour in zip(chosen, reversed(PALETTE), strict=False):
        bar = axes.barh([""], [one.value], left=begin, height=0.5, color=colour, label=one.name)
        axes.bar_label(bar, labels=[f"{one.value:,.0f}"], label_type="center", color="white", fontsize=8)
        begin += one.value
    axes.set_title("an event on one core, part by part")
    axes.set_xlabel("ns")
    plain(axes.xaxis)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    return with_legend(figure)


PLOTS: Final[Mapping[str, Plot]] = {
    "joins": ranked_bars("joins", "", "W0, two cores: seconds, end to end", unit="s", label=_joined),
    "rates": grouped_bars(
        Bars("overhead", "", "events a second, by source", "events/s", group="name", label="of"),
        Bars("shards", "", "the same in shards", "events/s", group="of", label="name"),
    ),
    "costs": _costs,
}
