"""The experiments (5, "Experiments and Results"): what each varies, the simulations of each place, sizes and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from rich.console import Console

from benchmarks.dbnet.network.session import CLOSING, COLUMNS, FULL, NetworkSession
from benchmarks.dbnet.network.tasks import DECREASING, DISTRIBUTION, QUANTILES, SHARES
from benchmarks.runner.benchmark import Benchmark, Experiment, Option
from benchmarks.runner.plots import COLOURS, Bars, Panel, Plot, grouped_bars, lines, place_label, with_legend
from benchmarks.runner.report import Measurement, Report, of_experiment
from benchmarks.runner.session import scales
from benchmarks.runner.tables import number, show_by_matcher, table_of
from tocsin.dissemination.can.construction import Splitting
from tocsin.dissemination.query_kinds.joins import JoinQueries
from tocsin.dissemination.scenarios.scenario import Scenario
from tocsin.dissemination.strategies.registry import STRATEGIES
from tocsin.views.aggregates.registry import RANGE_AGGREGATES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES: Final = scales(
    nodes=(100, 1_000),  # of the overlay,
    physical=(1_000, 20_000),  # and of the network that it is in
    subscriptions=(20_000, 500_000),  # where nothing else is said
    rows=(1_000, 10_000),
    events=(4_000, 200_000),  # where there are few simulations,
    several=(2_000, 50_000),  # and where a figure has many points
    database=((1_000, 4_000), (10_000, 20_000, 40_000, 60_000, 80_000, 100_000)),  # rows (figures 6 and 7)
    # subscriptions (figures 8 and 9)
    heard=((10_000, 40_000), (100_000, 200_000, 400_000, 600_000, 800_000, 1_000_000)),
    ignorable=((0.0, 0.5, 0.9), (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)),  # shares (figure 10)
    spikes=((0.0, 0.01), (0.0, 0.0025, 0.005, 0.01, 0.02)),  # shares (figure 11),
    spiked=(2_000, 50_000),  # and the rows there
    traced=((5_000, 20_000), (100_000, 300_000, 500_000)),  # subscriptions (figure 13)
    stocks=(300, 3_053),  # of quotes that are made up,
    steps=(10, 120),  # for so many steps
    compared=(5_000, 100_000),  # subscriptions, where kinds are compared,
    few=(500, 5_000),  # and the events there, each of which changes very many answers
    paired=(200, 2_000),  # events of joins, of which each makes several pairs come and go
    full=(40_000, 1_000_000),  # subscriptions, where everything is as large as it gets
    batch=(1_000, 2_000),  # events
    sample=(50, 200),  # subscriptions whose answers are recomputed
)

_SERVED: Final = ("S-UN", "S-MN", "S-CN")
"""Strategies that have a server, whose time and messages can be compared."""
_SENDING: Final = ("S-UN", "S-CN")
_TRAFFIC: Final = "bytes an event"
_TIME: Final = "server time an event"
_OUT: Final = "messages out of the server"
_STRESS: Final = "highest stress, messages"

_SHARED: Final = 0  # decimals of x with ignorable updates: two in three of 10,000 rows share their x
_IGNORABLE: Final = 0.21  # in figure 12

Places: TypeAlias = Callable[[Any, Path | None], Iterable[tuple[float | str, dict[str, Any]]]]
"""Where on its axis an experiment simulates, and the parameters that differ there; the file of quotes may be given."""


def _simulated(
    title: str,
    varied: str,
    shown: tuple[str, ...],
    places: Places,
    *,
    strategies: tuple[str, ...] = tuple(STRATEGIES),
    beside: str = "",
) -> Experiment[NetworkSession]:
    """Return an experiment of simulations; `beside` names figures that are taken beside the usual ones."""

    def measure(session: NetworkSession) -> None:
        scale = session.scale
        fields = ("nodes", "physical", "subscriptions", "rows", "events")
        usual = {name: getattr(scale, name) for name in fields}
        for at, others in places(scale, session.quotes):
            session.plan(at, Scenario(**{**usual, **others}), strategies, beside)

    return Experiment(title, varied, measure, shown, strategies)


def _several(scale: Any, **others: Any) -> dict[str, Any]:
    return {"events": scale.several, **others}


def _quoted(scale: Any, quotes: Path | None) -> Iterable[tuple[float, dict[str, Any]]]:
    usual = {"population": max(scale.traced), "trace": True, "stocks": scale.stocks, "steps": scale.steps}
    return [(count, {"subscriptions": count, "quotes": quotes, **usual}) for count in scale.traced]


def _kinds(scale: Any, _: Path | None) -> Iterable[tuple[str, dict[str, Any]]]:
    events = {**dict.fromkeys(RANGE_AGGREGATES, scale.few), JoinQueries.kind: scale.paired}
    fixed = {"subscriptions": scale.compared}
    return [(kind, {"kind": kind, "events": count, **fixed}) for kind, count in events.items()]


EXPERIMENTS: Final[Mapping[str, Experiment[NetworkSession]]] = {
    "database-size": _simulated(
        "Figures 6 and 7, table 2: number of rows",
        "rows",
        ("server time", "traffic", "outgoing"),
        lambda scale, _: [(rows, _several(scale, rows=rows)) for rows in scale.database],
    ),
    "subscriptions": _simulated(
        "Figures 8 and 9, table 3: number of subscriptions",
        "subscriptions",
        ("server time", "traffic", "outgoing"),
        lambda scale, _: [
            (count, _several(scale, subscriptions=count, population=max(scale.heard)))
            for count in scale.heard
        ],
    ),
    "cutoff": _simulated(
        "Where CN+ cuts off",
        "rows",
        ("traffic, decreasing", "spreading, decreasing", "overlay hops, decreasing", "traffic"),
        lambda scale, _: [(scale.rows, _several(scale))],
        strategies=("CN", "CN+", "S-CN"),
        beside=DECREASING,
    ),
    "ignorable": _simulated(
        "Figure 10: ignorable updates",
        "% ignorable",
        ("overlay hops", "traffic", "IP hops"),
        lambda scale, _: [
            (round(100 * share), _several(scale, short=True, spikes=0.0, ignorable=share, decimals=_SHARED))
            for share in scale.ignorable
        ],
    ),
    "affected": _simulated(
        "Figure 11: affected subscriptions",
        "% spikes",
        ("told", "traffic"),
        lambda scale, _: [
            (100 * share, _several(scale, rows=scale.spiked, spikes=share)) for share in scale.spikes
        ],
    ),
    "distribution": _simulated(
        "Figure 12: how traffic is distributed over events",
        "rows",
        (*SHARES, "traffic", "highest traffic", "highest stress"),
        lambda scale, _: [(scale.rows, {"ignorable": _IGNORABLE, "decimals": _SHARED})],
        beside=DISTRIBUTION,
    ),
    "trace": _simulated(
        "Figure 13: quotes of stocks, made up",
        "subscriptions",
        ("traffic", "highest stress"),
        lambda scale, _: _quoted(scale, None),
    ),
    "quotes": _simulated(
        "Quotes of stocks, as they were",
        "subscriptions",
        ("traffic", "highest stress"),
        lambda scale, quotes: [] if quotes is None else _quoted(scale, quotes),
    ),
    "kinds": _simulated(
        "Kinds of view", "kind", ("traffic", "outgoing", "told"), _kinds, strategies=("S-UN", "CN", "S-CN")
    ),
    "splitting": _simulated(
        "How the network splits its zones",
        "splitting",
        ("traffic", "overlay hops", "highest stress"),
        lambda scale, _: [(one.value, _several(scale, splitting=one)) for one in Splitting],
        strategies=("CN", "S-CN", "DS-CN"),
    ),
    FULL: _simulated(
        "Everything at its largest",
        "subscriptions",
        ("overlay hops", "IP hops", "traffic", "stress", "steps", "busiest link", "simulation"),
        lambda scale, _: [(scale.full, {"subscriptions": scale.full})],
    ),
}


def _show(report: Report, experiments: Mapping[str, Experiment[NetworkSession]]) -> None:
    show_by_matcher(report, experiments)
    found = of_experiment(report.measurements, CLOSING)
    units = {one.name: one.unit for one in found}
    table = table_of(
        ["strategy"],
        [f"{name}\n{units.get(name, '')}" for name in COLUMNS],
        "the closing table; in brackets the paper's words",
    )
    for strategy in dict.fromkeys(str(one.details["matcher"]) for one in found):
        own = {one.name: one for one in found if one.details["matcher"] == strategy}
        words = {name: str(own[name].details["paper"]) for name in COLUMNS}
        cells = (f"{number(own[name].value)}{f' ({words[name]})' if words[name] else ''}" for name in COLUMNS)
        table.add_row(strategy, *cells)
    if found:
        Console().print(table)


def _shares(figure: Figure, measurements: Sequence[Measurement]) -> bool:
    """Draw the share of the events that have at most so much traffic (figure 12)."""
    figure.set_size_inches(7.2, 3.6)
    axes = figure.subplots()
    for one in of_experiment(measurements, "distribution", QUANTILES):
        strategy = str(one.details["matcher"])
        quantiles = [name for name in one.details if name.endswith(" %")]
        levels = [(float(one.details[name]), float(name.removesuffix(" %"))) for name in quantiles]
        traffic, shares = np.array(sorted(levels)).T
        axes.step(traffic, shares, where="post", color=COLOURS.get(strategy), label=strategy)
    axes.set_title("figure 12: % of events with at most so much traffic")
    axes.set_xlabel("bytes")
    axes.set_xscale("symlog", linthresh=10)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 101)
    axes.xaxis.set_major_formatter(lambda value, _: place_label(value))
    return with_legend(figure)


PLOTS: Final[Mapping[str, Plot]] = {
    "figure-6": lines(
        Panel("database-size", "server time", "rows", f"figure 6: {_TIME}", labels=_SERVED),
        Panel("database-size", "outgoing", "rows", f"table 2: {_OUT}", labels=_SENDING),
    ),
    "figure-7": lines(Panel("database-size", "traffic", "rows", f"figure 7: {_TRAFFIC}")),
    "figure-8": lines(
        Panel("subscriptions", "server time", "subscriptions", f"figure 8: {_TIME}", labels=_SERVED),
        Panel("subscriptions", "outgoing", "subscriptions", f"table 3: {_OUT}", labels=_SENDING),
    ),
    "figure-9": lines(Panel("subscriptions", "traffic", "subscriptions", f"figure 9: {_TRAFFIC}")),
    "figure-10": lines(
        Panel("ignorable", "overlay hops", "% ignorable", "figure 10: overlay hops an event"),
        Panel("ignorable", "traffic", "% ignorable", _TRAFFIC),
        Panel("ignorable", "IP hops", "% ignorable", "IP hops an event"),
    ),
    "figure-11": lines(
        Panel("affected", "traffic", "affected subscriptions an event", f"figure 11: {_TRAFFIC}", by="told")
    ),
    "figure-12": _shares,
    "figure-13": lines(
        Panel("trace", "traffic", "subscriptions", f"figure 13: {_TRAFFIC}"),
        Panel("trace", "highest stress", "subscriptions", _STRESS),
    ),
    "quotes": lines(
        Panel("quotes", "traffic", "subscriptions", f"quotes as they were: {_TRAFFIC}"),
        Panel("quotes", "highest stress", "subscriptions", _STRESS),
    ),
    "network-kinds": grouped_bars(
        Bars("kinds", "traffic", f"{_TRAFFIC} by kind"), Bars("kinds", "outgoing", _OUT)
    ),
    "splitting": grouped_bars(
        Bars("splitting", "traffic", f"{_TRAFFIC} by splitting"),
        Bars("splitting", "overlay hops", "overlay hops"),
    ),
}


BENCHMARK: Final = Benchmark(
    name="network",
    title="Database/network interface (SIGMOD 2006), the network's side: six strategies, simulated link by link.",
    sizes="small: about a minute; paper: 1,000 nodes, up to 1,000,000 subscriptions",
    scales=SCALES,
    session=NetworkSession,
    experiments=EXPERIMENTS,
    show=_show,
    plots=PLOTS,
    options=(
        Option("strategy", "Only this strategy; may be given several times.", many=True),
        Option("data", "Read quotes from this folder's stock_quotes.jsonl.gz.", Path),
        Option("spark", "Spread the simulations over Spark instead of one after another.", flag=True),
        Option("master", "Where Spark runs, as `local[2]` or `spark://…`."),
    ),
)
