"""The experiments (5, "Experiments and Results"): what each varies, and which simulations that takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from benchmarks.dbnet.network.figures import DECREASING, DISTRIBUTION
from benchmarks.dbnet.network.scales import Scale
from benchmarks.dbnet.views.inputs import Data
from benchmarks.runner.report import Report
from tocsin.dissemination.can.construction import Splitting
from tocsin.dissemination.query_kinds.joins import JoinQueries
from tocsin.dissemination.scenarios.scenario import Scenario
from tocsin.dissemination.strategies.registry import STRATEGIES
from tocsin.views.aggregates.registry import RANGE_AGGREGATES

FULL: Final = "full"

_SHARED: Final = (
    0  # decimals of x where updates are to be ignorable: two in three of 10,000 rows share theirs
)
_IGNORABLE: Final = 0.21  # in figure 12


class Place(Struct, frozen=True):
    """Where on its axis an experiment simulates, and what."""

    at: int | float | str
    scenario: Scenario


class Experiment(Struct, frozen=True, kw_only=True):
    """What is varied, by whom, and which figures are printed."""

    title: str
    varied: str
    places: Callable[[Scale, Data], Iterator[Place]]
    shown: tuple[str, ...] = ("traffic",)
    strategies: tuple[str, ...] = tuple(STRATEGIES)
    beside: str = ""


def printed(report: Report) -> Report:
    """Return a report with only those figures that are printed."""
    shown = {(name, figure) for name, one in EXPERIMENTS.items() for figure in one.shown}
    kept = (one for one in report.measurements if (str(one.details["experiment"]), one.name) in shown)
    return replace(report, measurements=tuple(kept))


def _database_size(scale: Scale, _: Data) -> Iterator[Place]:
    for rows in scale.database:
        yield Place(rows, _scenario(scale, rows=rows, events=scale.several))


def _subscriptions(scale: Scale, _: Data) -> Iterator[Place]:
    for count in scale.heard:
        scenario = _scenario(scale, subscriptions=count, population=max(scale.heard), events=scale.several)
        yield Place(count, scenario)


def _cutoff(scale: Scale, _: Data) -> Iterator[Place]:
    yield Place(scale.rows, _scenario(scale, events=scale.several))


def _ignorable(scale: Scale, _: Data) -> Iterator[Place]:
    for share in scale.ignorable:
        scenario = _scenario(
            scale, events=scale.several, short=True, spikes=0.0, ignorable=share, decimals=_SHARED
        )
        yield Place(round(100 * share), scenario)


def _affected(scale: Scale, _: Data) -> Iterator[Place]:
    for share in scale.spikes:
        scenario = _scenario(scale, rows=scale.spiked, events=scale.several, spikes=share)
        yield Place(100 * share, scenario)


def _distribution(scale: Scale, _: Data) -> Iterator[Place]:
    yield Place(scale.rows, _scenario(scale, ignorable=_IGNORABLE, decimals=_SHARED))


def _trace(scale: Scale, _: Data) -> Iterator[Place]:
    return _quoted(scale, None)


def _quotes(scale: Scale, data: Data) -> Iterator[Place]:
    return iter(()) if data.quotes is None else _quoted(scale, data.quotes)


def _quoted(scale: Scale, quotes: Path | None) -> Iterator[Place]:
    for count in scale.traced:
        scenario = _scenario(
            scale,
            subscriptions=count,
            population=max(scale.traced),
            trace=True,
            quotes=quotes,
            stocks=scale.stocks,
            steps=scale.steps,
        )
        yield Place(count, scenario)


def _kinds(scale: Scale, _: Data) -> Iterator[Place]:
    for kind in RANGE_AGGREGATES:
        yield Place(kind, _scenario(scale, kind=kind, subscriptions=scale.compared, events=scale.few))
    of_pairs = _scenario(scale, kind=JoinQueries.kind, subscriptions=scale.compared, events=scale.paired)
    yield Place(JoinQueries.kind, of_pairs)


def _splitting(scale: Scale, _: Data) -> Iterator[Place]:
    for splitting in Splitting:
        yield Place(splitting.value, _scenario(scale, events=scale.several, splitting=splitting))


def _full(scale: Scale, _: Data) -> Iterator[Place]:
    yield Place(scale.full, _scenario(scale, subscriptions=scale.full))


def _scenario(scale: Scale, **others: object) -> Scenario:
    """Return a scenario of a scale's sizes, but for some parameters."""
    sizes: dict[str, object] = {
        name: getattr(scale, name) for name in ("nodes", "physical", "subscriptions", "rows", "events")
    }
    return Scenario(**{**sizes, **others})  # type: ignore[arg-type]


EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "database-size": Experiment(
        title="Figures 6 and 7, table 2: number of rows",
        varied="rows",
        places=_database_size,
        shown=("server time", "traffic", "outgoing"),
    ),
    "subscriptions": Experiment(
        title="Figures 8 and 9, table 3: number of subscriptions",
        varied="subscriptions",
        places=_subscriptions,
        shown=("server time", "traffic", "outgoing"),
    ),
    "cutoff": Experiment(
        title="Where CN+ cuts off",
        varied="rows",
        places=_cutoff,
        shown=("traffic, decreasing", "spreading, decreasing", "overlay hops, decreasing", "traffic"),
        strategies=("CN", "CN+", "S-CN"),
        beside=DECREASING,
    ),
    "ignorable": Experiment(
        title="Figure 10: ignorable updates",
        varied="% ignorable",
        places=_ignorable,
        shown=("overlay hops", "traffic", "IP hops"),
    ),
    "affected": Experiment(
        title="Figure 11: affected subscriptions",
        varied="% spikes",
        places=_affected,
        shown=("told", "traffic"),
    ),
    "distribution": Experiment(
        title="Figure 12: how traffic is distributed over events",
        varied="rows",
        places=_distribution,
        shown=(
            "no traffic",
            "below 100 B",
            "at least 320 B",
            "below 1 kB",
            "traffic",
            "highest traffic",
            "highest stress",
        ),
        beside=DISTRIBUTION,
    ),
    "trace": Experiment(
        title="Figure 13: quotes of stocks, made up",
        varied="subscriptions",
        places=_trace,
        shown=("traffic", "highest stress"),
    ),
    "quotes": Experiment(
        title="Quotes of stocks, as they were",
        varied="subscriptions",
        places=_quotes,
        shown=("traffic", "highest stress"),
    ),
    "kinds": Experiment(
        title="Kinds of view",
        varied="kind",
        places=_kinds,
        shown=("traffic", "outgoing", "told"),
        strategies=("S-UN", "CN", "S-CN"),
    ),
    "splitting": Experiment(
        title="How the network splits its zones",
        varied="splitting",
        places=_splitting,
        shown=("traffic", "overlay hops", "highest stress"),
        strategies=("CN", "S-CN", "DS-CN"),
    ),
    FULL: Experiment(
        title="Everything at its largest",
        varied="subscriptions",
        places=_full,
        shown=("overlay hops", "IP hops", "traffic", "stress", "steps", "busiest link", "simulation"),
    ),
}
