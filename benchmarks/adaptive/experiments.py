"""The workloads, the papers' and others, with their sizes; each is an experiment that all matchers take part in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.adaptive.changes import measure_changes
from benchmarks.adaptive.session import AdaptiveSession, Source
from benchmarks.adaptive.table import draw_ratios, show
from benchmarks.adaptive.workloads import numbers, texts
from benchmarks.amkh import workload as amkh
from benchmarks.lesubscribe import workload as lesubscribe
from benchmarks.opindex.workloads import table3
from benchmarks.opindex.workloads.keywords import KeywordParameters, KeywordWorkload
from benchmarks.opindex.workloads.prefix import PrefixParameters, PrefixWorkload
from benchmarks.opindex.workloads.products import ProductParameters, ProductWorkload
from benchmarks.runner.benchmark import MATCHERS, Benchmark, Experiment, Option
from benchmarks.runner.plots import Plot
from benchmarks.runner.session import scales

SCALES: Final = scales(
    subscriptions=(20_000, 100_000),
    events=(2_000, 4_000),  # that a figure is taken from,
    rounds=(2, 5),  # so many times, of which the best counts
    single=(300, 1_000),  # of the events, one by one
    warm_up=(10_000, 10_000),  # similar events before;
    seconds=(0.1, 0.5),  # matchers that learn nothing from events get so many seconds of them at least
    batch=(1_000, 1_000),  # events
    tried=(100, 100),  # events after which a slow matcher is known
    stopped=(20.0, 20.0),  # times the best: a matcher that takes longer is stopped
    patience=(20.0, 60.0),  # seconds in which a matcher takes all subscriptions
    settling=(30_000, 60_000),  # events before a change,
    drifting=(60_000, 200_000),  # and after it,
    drift_step=(10_000, 10_000),  # by so many
    drift_batch=(500, 500),  # a batch of them
    within=(1.3, 1.3),  # times the best: the change is over
    changed=(20_000, 1_000_000),  # subscriptions beside which there are single changes,
    changes=(2_000, 40_000),  # so many
    documents=(2_000, 20_000),  # of a made-up corpus,
    words=(10_000, 50_000),  # the most frequent words, of any corpus
    catalogue=(4_000, 20_000),  # products of a made-up catalogue,
    catalogue_attributes=(2_000, 4_000),  # and their attributes
)

Row = Experiment[AdaptiveSession]


def _workload(title: str, make: Callable[[AdaptiveSession], Source]) -> Row:
    return Row(title, "subscriptions", lambda session: session.compare(make(session)))


def _table1(name: str) -> Row:
    return _workload(name, lambda _: lesubscribe.Workload(lesubscribe.WORKLOADS[name]))


def _keywords(title: str, parameters: KeywordParameters) -> Row:
    return _workload(title, lambda s: KeywordWorkload(s.corpus, parameters))


def _written(make: Callable[[Path], Source], kind: str) -> Row:
    """Return an experiment on real events of a kind, which is left out without them."""

    def measure(session: AdaptiveSession) -> None:
        if session.has(kind):
            path = session.files[kind]
            assert path is not None  # noqa: S101 - `has` said so
            session.compare(make(path))

    return Row(f"real {kind}", "subscriptions", measure)


def _products(session: AdaptiveSession) -> None:
    if session.has("products"):
        session.compare(ProductWorkload(session.products, ProductParameters(from_one=True)))


def _news(session: AdaptiveSession) -> None:
    if session.has("news"):
        session.compare(KeywordWorkload(session.news, KeywordParameters(long=True)))


def _drift(session: AdaptiveSession) -> None:
    session.drift(numbers.hot_half(0), numbers.hot_half(6))


def _changes(session: AdaptiveSession) -> None:
    measure_changes(
        session,
        {
            "W0 with ranges": lesubscribe.Workload(lesubscribe.WORKLOADS["W0 with ranges"]),
            "hot attributes": numbers.hot_half(0),
            "one hot value": numbers.hot_value(),
            "twenty distinct": numbers.equal(20),
        },
    )


EXPERIMENTS: Final[Mapping[str, Row]] = {
    "W0": _table1("W0"),
    "W0 with ranges": _table1("W0 with ranges"),
    "W1": _table1("W1"),
    "W2": _table1("W2"),
    "W6": _table1("W6"),
    "sparse": _workload("sparse attributes", lambda _: table3.Workload(table3.Parameters())),
    "keywords": _keywords("keywords", KeywordParameters()),
    "keyword intervals": _keywords("keyword intervals", KeywordParameters(intervals=True, long=True)),
    "products": _workload(
        "products", lambda s: ProductWorkload(s.catalogue, ProductParameters(from_one=True))
    ),
    "prefixes": _workload("prefixes", lambda _: PrefixWorkload(PrefixParameters(word_share=0.9))),
    "amkh": _workload("AMKH figure 1", lambda _: amkh.Workload(amkh.FIGURE_1)),
    "equal": _workload("equal by the thousand", lambda s: numbers.equal(s.count)),
    "hot value": _workload("one hot value", lambda _: numbers.hot_value()),
    "nested": _workload("nested ranges", lambda _: numbers.nested()),
    "thresholds": _workload("thresholds", lambda _: numbers.thresholds()),
    "bands": _workload("narrow bands", lambda _: numbers.bands()),
    "one differs": _workload("one attribute differs", lambda s: numbers.one_differs(s.count)),
    "hot half": _workload("hot attributes", lambda _: numbers.hot_half(0)),
    "lists": _workload("lists", lambda _: texts.lists()),
    "mixed": _workload("mixed operators", lambda _: texts.mixed()),
    "flights": _written(texts.flights, "flights"),
    "quotes": _written(texts.quotes, "quotes"),
    "real products": Row("real products", "subscriptions", _products),
    "news": Row("real news", "subscriptions", _news),
    "drift": Row("drift", "events", _drift),
    "changes": Row("single changes", "workload", _changes),
}

PLOTS: Final[Mapping[str, Plot]] = {"ratios": draw_ratios}

BENCHMARK: Final = Benchmark(
    name="adaptive",
    title="The matcher `adaptive` beside all others: the papers' workloads, others unlike them, and drift.",
    sizes="small: about two minutes; paper: 100,000 subscriptions, about a quarter of an hour",
    scales=SCALES,
    session=AdaptiveSession,
    experiments=EXPERIMENTS,
    show=show,
    plots=PLOTS,
    options=(
        MATCHERS,
        Option("data", "Measure with this folder's flights, quotes, products and news, too.", Path),
        Option("subscriptions", "So many subscriptions, not as many as the scale has.", int),
    ),
)
