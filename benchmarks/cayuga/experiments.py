"""The experiments of figures 6, 7 and 8, loading, and two queries over prices of stocks, with their sizes and plots."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from benchmarks.cayuga.session import ALL, KINDS, VARIED, CayugaSession, Subject, feed_input, technical_input
from benchmarks.cayuga.ticks import ticks
from benchmarks.cayuga.workloads import feeds
from benchmarks.cayuga.workloads.technical import TABLE_3, Kind, Parameters
from benchmarks.runner.benchmark import Benchmark, Experiment, Option, sweep
from benchmarks.runner.plots import Panel, Plot, lines, ranked_bars
from benchmarks.runner.session import scales
from benchmarks.runner.tables import show_by_place
from benchmarks.workloads.tabular import FilledTemplate
from tocsin.engine import Engine
from tocsin.language import to_text
from tocsin.language.template.template import bindings_at
from tocsin.sequences import MODES

SCALES: Final = scales(
    sizes=((5_000, 20_000), (100_000, 200_000, 300_000, 400_000)),  # subscriptions (figure 6a)
    usual=(10_000, 200_000),  # subscriptions, where something else is varied (figures 6b and 6c)
    # subscriptions whose attributes are drawn for each step anew: they need many templates
    by_step=(200, 100_000),
    loaded=(20_000, 400_000),  # subscriptions that are loaded in several ways,
    texts=(200, 2_000),  # and as texts, one by one
    # subscriptions, where parts are switched off (figure 7)
    optimised=((500, 2_000), (10_000, 20_000, 30_000, 40_000)),
    feed=((1_000, 4_000), (10_000, 20_000, 30_000, 40_000)),  # subscriptions to feeds (figure 8)
    articles=(4_000, 26_623),  # of a feed
    stocks=(100, 505),  # of prices that are made up,
    days=(250, 1_226),  # for so many days
    exponents=((0.8, 1.4), (0.8, 1.0, 1.2, 1.4)),  # zipf1
    selectivities=((0.5, 0.9), (0.5, 0.6, 0.7, 0.8, 0.9)),
    events=(10_000, 100_000),  # that a figure is taken from,
    seconds=(0.3, 10.0),  # or as many batches of them as this time allows
    warm_up=(500, 10_000),  # events before, or as many as the same time allows
    batch=(1_000, 1_000),  # events
    repeats=(1, 3),  # of the queries over stocks, of which the median counts
)

_WITHOUT: Final[Kind] = "Filter"  # where parts are switched off


def _by_kind(over: str, parameters: Callable[[Any], Parameters]) -> Callable[[CayugaSession], None]:
    """Return the measuring of all kinds of sequences at the usual size, by a parameter of table 3."""

    def measure(session: CayugaSession, at: float) -> None:
        for kind in KINDS:
            session.measure(kind, technical_input(kind, session.scale.usual, parameters(at)), at)

    return sweep(over, measure)


def _subscriptions(session: CayugaSession) -> None:
    for count in session.scale.sizes:
        for kind in KINDS:
            session.measure(kind, technical_input(kind, count), count)
    count = session.scale.by_step
    by_step = technical_input(VARIED, count, replace(TABLE_3, by_step=True))
    session.measure(f"{VARIED}, attributes by step", by_step, count)


def _optimisation(session: CayugaSession, count: int) -> None:
    given = replace(technical_input(_WITHOUT, count), levels=())  # one mode merges nothing
    for mode in MODES:
        session.measure(mode, given, count, mode=mode, same=_WITHOUT)


def _feed(session: CayugaSession, count: int) -> None:
    for kind in feeds.TEMPLATES:
        session.measure(kind, feed_input(session.feed, kind, count), count)


def _loading(session: CayugaSession) -> None:
    """Load subscriptions of LinearStat by the column, with and without the engine, and as texts."""
    count = session.scale.loaded
    groups = technical_input("LinearStat", count).groups
    session.tell("by the column", f"{count:,} subscriptions")
    session.record_loading("by the column", count, Subject(session.matcher, ALL).load(groups))
    _load(session, "Engine.subscribe_many", count, lambda engine: _subscribe_many(engine, groups))
    texts = list(islice(chain.from_iterable(map(_texts, groups)), session.scale.texts))
    _load(session, "Engine.subscribe", len(texts), lambda engine: list(map(engine.subscribe, texts)))


def _load(session: CayugaSession, label: str, count: int, load: Callable[[Engine], object]) -> None:
    session.tell(label, f"{count:,} subscriptions")
    engine = Engine(matcher=session.matcher)
    begun = time.perf_counter()
    load(engine)
    session.record("loading", label, count, count / (time.perf_counter() - begun), "subscriptions/s")


def _subscribe_many(engine: Engine, groups: Sequence[FilledTemplate]) -> None:
    for rows in groups:
        engine.subscribe_many(rows.template(), rows.columns)


def _texts(rows: FilledTemplate) -> Iterator[str]:
    """Return the text of each row."""
    template = rows.template()
    return (to_text(template.bind(bindings_at(rows.columns, row))) for row in range(len(rows)))


EXPERIMENTS: Final[Mapping[str, Experiment[CayugaSession]]] = {
    "subscriptions": Experiment("Figure 6a: number of subscriptions", "subscriptions", _subscriptions),
    "skew": Experiment(
        "Figure 6b: skew",
        "zipf1",
        _by_kind("exponents", lambda at: replace(TABLE_3, zipf=(at, *TABLE_3.zipf[1:]))),
    ),
    "selectivity": Experiment(
        "Figure 6c: selectivity of inequalities",
        "selectivity",
        _by_kind("selectivities", lambda at: replace(TABLE_3, selectivity=at)),
    ),
    "optimisation": Experiment(
        "Figure 7: parts switched off, Filter", "subscriptions", sweep("optimised", _optimisation)
    ),
    "rss": Experiment("Figure 8: feeds", "subscriptions", sweep("feed", _feed)),
    "loading": Experiment("Loading LinearStat", "subscriptions", _loading),
    "ticks": Experiment("S3 and S4 over prices of stocks", "prices", ticks),
}

_RATE: Final = "throughput"

PLOTS: Final[Mapping[str, Plot]] = {
    "figure-6": lines(
        Panel("subscriptions", _RATE, "subscriptions", "figure 6a: events a second"),
        Panel("skew", _RATE, "zipf1", "figure 6b: by skew"),
        Panel("selectivity", _RATE, "selectivity", "figure 6c: by selectivity"),
    ),
    "nodes": lines(
        Panel("subscriptions", "nodes", "subscriptions", "nodes after merging"),
        Panel("subscriptions", "active nodes", "subscriptions", "nodes with instances"),
        Panel("subscriptions", "visited nodes", "subscriptions", "nodes visited an event"),
    ),
    "figure-7": lines(Panel("optimisation", _RATE, "subscriptions", "figure 7: events a second")),
    "figure-8": lines(Panel("rss", _RATE, "subscriptions", "figure 8: events a second")),
    "loading": lines(
        Panel("subscriptions", "loading", "subscriptions", "subscriptions loaded a second"),
        Panel("subscriptions", "memory", "subscriptions", "bytes per subscription"),
    ),
    "ticks": ranked_bars("ticks", _RATE, "S3 and S4: prices a second, one core"),
}

BENCHMARK: Final = Benchmark(
    name="cayuga",
    title="Cayuga (EDBT 2006): events a second of sequences, with parts switched off, over feeds, beside SQL.",
    sizes="small: about a minute; paper: up to 400,000 subscriptions",
    scales=SCALES,
    session=CayugaSession,
    experiments=EXPERIMENTS,
    show=partial(show_by_place, of="of"),
    plots=PLOTS,
    options=(
        Option("matcher", "The matcher of the static parts of sequences; `adaptive` if not given."),
        Option(
            "data", "Read articles and prices from this folder's news.jsonl.gz and stocks.jsonl.zst.", Path
        ),
    ),
)
