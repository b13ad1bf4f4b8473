"""The experiments (5, "Experiments and Results"): what each varies, and the simulations of each place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from rich.console import Console

from benchmarks.dbnet.network.figures import DECREASING, DISTRIBUTION
from benchmarks.dbnet.network.plots import PLOTS
from benchmarks.dbnet.network.scale import SCALES
from benchmarks.dbnet.network.session import CLOSING, COLUMNS, FULL, NetworkSession
from benchmarks.runner.benchmark import Benchmark, Experiment, Option
from benchmarks.runner.report import Report, of_experiment
from benchmarks.runner.tables import number, show_by_matcher, table_of
from tocsin.dissemination.can.construction import Splitting
from tocsin.dissemination.query_kinds.joins import JoinQueries
from tocsin.dissemination.scenarios.scenario import Scenario
from tocsin.dissemination.strategies.registry import STRATEGIES
from tocsin.views.aggregates.registry import RANGE_AGGREGATES

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
        usual = {
            name: getattr(scale, name) for name in ("nodes", "physical", "subscriptions", "rows", "events")
        }
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
    return [
        (kind, {"kind": kind, "subscriptions": scale.compared, "events": count})
        for kind, count in events.items()
    ]


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
        (
            "no traffic",
            "below 100 B",
            "at least 320 B",
            "below 1 kB",
            "traffic",
            "highest traffic",
            "highest stress",
        ),
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
