"""The experiments by the paper's figures, with their sizes and plots; each varies one thing in a workload for all matchers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from benchmarks.opindex.session import GAPS, Input, OpIndexSession
from benchmarks.opindex.workloads import table3
from benchmarks.opindex.workloads.keywords import KeywordParameters, KeywordWorkload
from benchmarks.opindex.workloads.prefix import PrefixParameters, PrefixWorkload
from benchmarks.opindex.workloads.products import ProductParameters, ProductWorkload
from benchmarks.opindex.workloads.table3 import ClauseParameters, ClauseWorkload
from benchmarks.runner.benchmark import MATCHERS, Benchmark, Experiment, Option, sweep
from benchmarks.runner.plots import Panel, Plot, lines
from benchmarks.runner.report import Report
from benchmarks.runner.session import scales
from benchmarks.runner.subject import Contender
from benchmarks.runner.tables import show_by_place
from tocsin.cli.terminal import note
from tocsin.replay.numbered import NumberedSubscriptions

SCALES: Final = scales(
    sizes=((5_000, 20_000, 50_000), (1_000_000, 5_000_000, 10_000_000, 20_000_000)),  # subscriptions (N)
    usual=(20_000, 1_000_000),  # subscriptions, where something else is varied
    input_a=((20_000,), (1_000_000, 10_000_000)),  # subscriptions, of the input that targets are set for
    queries=((5_000, 20_000), (1_000_000, 3_000_000)),  # subscriptions of keywords
    products=((2_000, 5_000), (250_000, 1_000_000)),  # subscriptions to products
    product_usual=(2_000, 1_000_000),  # where their size is varied
    forms=((5_000, 20_000), (1_000_000, 3_000_000)),  # subscriptions in CNF and in DNF
    form_usual=(10_000, 1_000_000),  # where their clauses are varied
    prefixes=(5_000, 1_000_000),  # subscriptions, some of them to prefixes
    attributes=((20_000, 40_000, 60_000), (20_000, 40_000, 60_000)),  # d
    predicates=((4, 8, 20), (4, 8, 20)),  # the largest subscription
    pairs=((20, 60, 120), (20, 40, 60, 80, 100, 120)),  # the largest event (m)
    equal_shares=((20, 60, 100), (20, 40, 60, 80, 100)),  # per cent of predicates `=`
    values=((50, 800, 12_800), (50, 800, 12_800)),  # sigma
    exponents=((0.0, 0.6, 1.0), (0.0, 0.4, 0.8, 1.0)),  # Zipf's
    clauses=((1, 5, 9), (1, 5, 9)),  # the most in a subscription
    prefix_shares=((20, 60, 100), (20, 60, 100)),  # per cent of predicates `starts with`
    prefix_lengths=((2, 4, 6), (2, 4, 6)),
    capacities=((5, 50, 250), (5, 50, 100, 150, 200, 250)),  # of a BE-Tree's leaf
    documents=(2_000, 20_000),  # of a made-up corpus,
    words=(10_000, 50_000),  # the most frequent words, of any corpus
    catalogue=(4_000, 50_000),  # products of a made-up catalogue,
    catalogue_attributes=(2_000, 8_000),  # and their attributes
    events=(500, 10_000),  # that a figure is taken from,
    seconds=(0.1, 2.0),  # or as many batches of them as this time allows
    warm_up=(100, 500),  # events before
    batch=(100, 250),  # events
    dicts=(100, 1_000),  # events that are encoded from dicts
    tried=(50_000, 20_000),  # subscriptions from which the cost of many more is estimated
    patience=(5.0, 900.0),  # seconds that one matcher may take at one place
)

_DEFAULT: Final = table3.Parameters()
_COUNT: Final = "subscriptions"  # the varied parameter where nothing else is
_LONG: Final = 138  # words, of which about 123 are different

MakeInput = Callable[[OpIndexSession, Any], Input]
Row = Experiment[OpIndexSession]


def _swept(
    title: str, varied: str, over: str, make: MakeInput, usual: str = "", *, clauses: bool = False
) -> Row:
    """Return the experiment on the inputs that `make` returns for each value of the scale's field `over`.

    The value is the number of subscriptions, unless `usual` names the scale's field that holds their number.
    """

    def measure(session: OpIndexSession, at: Any) -> None:
        count = getattr(session.scale, usual) if usual else at
        session.compare(make(session, at), at, count, growing=not usual, clauses=clauses)

    return Row(title, varied, sweep(over, measure))


def _table3(**parameters: Any) -> Input:
    return Input.of(table3.Workload(replace(_DEFAULT, **parameters)))


def _by(field: str = "", **others: Any) -> MakeInput:
    """Return the maker of table 3's workload by one of its parameters."""
    return lambda _, at: _table3(**({field: at} if field else {}), **others)


def _pairs(session: OpIndexSession, *, full: bool) -> None:
    """Figure 10c: the subscriptions stay, and only events are varied."""
    varied = {count: replace(_DEFAULT, most_pairs=count, full_events=full) for count in session.scale.pairs}
    events = {count: table3.Workload(parameters).events for count, parameters in varied.items()}
    session.compare(Input(table3.Workload(_DEFAULT).subscriptions, events), "all", session.scale.usual)


def _capacities(session: OpIndexSession, count: int) -> None:
    for contender in session.taking_part((Contender("be-tree", "be-tree", {"capacity": count}),)):
        session.measure(contender, _table3(), count, session.scale.usual)


def _keywords(session: OpIndexSession, *, intervals: bool) -> Input:
    corpus = session.corpus
    short = KeywordWorkload(corpus, KeywordParameters(intervals=intervals))
    long = KeywordWorkload(corpus, KeywordParameters(intervals=intervals, long=True, document_words=_LONG))
    return Input(short.subscriptions, {"short": short.events, "long": long.events})


def _products(session: OpIndexSession, **parameters: Any) -> Input:
    return Input.of(ProductWorkload(session.catalogue, ProductParameters(**parameters)))


def _disjunctive(**parameters: Any) -> Input:
    workload = ClauseWorkload(ClauseParameters(**parameters))

    def draw(begin: int, end: int) -> Iterator[NumberedSubscriptions]:
        return (batch.any_of_all() for batch in workload.subscriptions(begin, end))

    return Input(draw, {"": workload.events})


def _conjunctive(**parameters: Any) -> Input:
    return Input.of(ClauseWorkload(ClauseParameters(**parameters)))


def _prefix(session: OpIndexSession, **parameters: Any) -> Input:
    usual = PrefixParameters(**parameters)
    both = (usual, replace(usual, word_share=0.9))
    drawn, hard = (PrefixWorkload(one, words=session.words) for one in both)
    return Input(drawn.subscriptions, {"any": drawn.events, "words": hard.events})


EXPERIMENTS: Final[Mapping[str, Row]] = {
    "input A": _swept("What the targets are set for", _COUNT, "input_a", _by(most_pairs=60)),
    "attributes": _swept(
        "Figure 1: number of attributes", "attributes", "attributes", _by("attributes"), "usual"
    ),
    "capacity": Row("Figure 7: capacity of BE-Tree's leaves", "capacity", sweep("capacities", _capacities)),
    "subscriptions": _swept("Figures 8a, 9a, 10a: number of subscriptions", _COUNT, "sizes", _by()),
    "predicates": _swept(
        "Figures 9b, 10b: largest subscription", "predicates", "predicates", _by("most_predicates"), "usual"
    ),
    "pairs": Row("Figure 10c: largest event", "attributes", partial(_pairs, full=False)),
    "full events": Row("Figure 10c, all events that large", "attributes", partial(_pairs, full=True)),
    "equal share": _swept(
        "Figure 10d: share of `=`",
        "% `=`",
        "equal_shares",
        lambda _, at: _table3(equal_share=at / 100),
        "usual",
    ),
    "values": _swept("Figures 8b, 10e: number of values", "values", "values", _by("values"), "usual"),
    "zipf": _swept("Figure 10f: Zipf's exponent", "exponent", "exponents", _by("zipf"), "usual"),
    "keywords": _swept(
        "Figure 11: keywords, `=`", _COUNT, "queries", lambda session, _: _keywords(session, intervals=False)
    ),
    "keyword intervals": _swept(
        "Figure 11: keywords, intervals",
        _COUNT,
        "queries",
        lambda session, _: _keywords(session, intervals=True),
    ),
    "products": _swept(
        "Figure 12: products, attributes as the paper draws them",
        _COUNT,
        "products",
        lambda session, _: _products(session),
    ),
    "products from one": _swept(
        "Figure 12: products, attributes of one product",
        _COUNT,
        "products",
        lambda session, _: _products(session, from_one=True),
    ),
    "product predicates": _swept(
        "Figure 12: products, largest subscription",
        "predicates",
        "predicates",
        lambda session, at: _products(session, most_predicates=at),
        "product_usual",
    ),
    "dnf": _swept("Figure 13a: DNF, number of subscriptions", _COUNT, "forms", lambda *_: _disjunctive()),
    "cnf": _swept(
        "Figure 13a: CNF, number of subscriptions", _COUNT, "forms", lambda *_: _conjunctive(), clauses=True
    ),
    "dnf clauses": _swept(
        "Figure 13b: DNF, most clauses",
        "clauses",
        "clauses",
        lambda _, at: _disjunctive(most_clauses=at),
        "form_usual",
    ),
    "cnf clauses": _swept(
        "Figure 13b: CNF, most clauses",
        "clauses",
        "clauses",
        lambda _, at: _conjunctive(most_clauses=at),
        "form_usual",
        clauses=True,
    ),
    "prefix share": _swept(
        "Figure 14a: share of prefixes",
        "% prefixes",
        "prefix_shares",
        lambda session, at: _prefix(session, prefix_share=at / 100),
        "prefixes",
    ),
    "prefix length": _swept(
        "Figure 14b: length of prefixes",
        "letters",
        "prefix_lengths",
        lambda session, at: _prefix(session, prefix_length=at),
        "prefixes",
    ),
}


def _show(report: Report, experiments: Mapping[str, Row]) -> None:
    show_by_place(report, experiments, GAPS)
    if (absent := report.parameters["not_there"]) != "none":
        note(f"not registered, and so not compared: {absent}")


_BUILD, _MATCHING, _MEMORY = "build time", "matching time", "memory"

PLOTS: Final[Mapping[str, Plot]] = {
    "attributes": lines(
        Panel("attributes", _BUILD, "attributes", "figure 1: building"),
        Panel("attributes", _MATCHING, "attributes", "figure 1: matching"),
    ),
    "capacity": lines(
        Panel("capacity", _BUILD, "capacity of a leaf", "figure 7: building"),
        Panel("capacity", _MATCHING, "capacity of a leaf", "figure 7: matching"),
    ),
    "memory": lines(
        Panel("subscriptions", _MEMORY, "subscriptions", "figure 8a: by subscriptions"),
        Panel("values", _MEMORY, "values of an attribute", "figure 8b: by values"),
    ),
    "building": lines(
        Panel("subscriptions", _BUILD, "subscriptions", "figure 9a: by subscriptions"),
        Panel("predicates", _BUILD, "largest subscription", "figure 9b: by predicates"),
    ),
    "matching": lines(
        Panel("subscriptions", _MATCHING, "subscriptions", "figure 10a: subscriptions"),
        Panel("predicates", _MATCHING, "largest subscription", "figure 10b: predicates"),
        Panel("pairs", _MATCHING, "largest event", "figure 10c: event size, 1 to m"),
        Panel("full events", _MATCHING, "size of all events", "figure 10c: event size, all m"),
        Panel("equal share", _MATCHING, "% of predicates that are =", "figure 10d: operators"),
        Panel("values", _MATCHING, "values of an attribute", "figure 10e: values"),
        Panel("zipf", _MATCHING, "Zipf's exponent", "figure 10f: skew"),
    ),
    "keywords": lines(
        Panel("keywords", _BUILD, "subscriptions", "figure 11: building, ="),
        Panel("keywords", _MATCHING, "subscriptions", "short documents, =", "short"),
        Panel("keywords", _MATCHING, "subscriptions", "long documents, =", "long"),
        Panel("keyword intervals", _BUILD, "subscriptions", "figure 11: building, intervals"),
        Panel("keyword intervals", _MATCHING, "subscriptions", "short, intervals", "short"),
        Panel("keyword intervals", _MATCHING, "subscriptions", "long, intervals", "long"),
        widest=3,
    ),
    "products": lines(
        Panel("products", _BUILD, "subscriptions", "figure 12: building"),
        Panel("product predicates", _BUILD, "largest subscription", "building"),
        Panel("products from one", _BUILD, "subscriptions", "building, drawn from a product"),
        Panel("products", _MATCHING, "subscriptions", "matching"),
        Panel("product predicates", _MATCHING, "largest subscription", "matching"),
        Panel("products from one", _MATCHING, "subscriptions", "matching, drawn from a product"),
        widest=3,
    ),
    "forms": lines(
        Panel("dnf", _MATCHING, "subscriptions", "figure 13a: DNF"),
        Panel("cnf", _MATCHING, "subscriptions", "figure 13a: CNF"),
        Panel("dnf clauses", _MATCHING, "most clauses", "figure 13b: DNF"),
        Panel("cnf clauses", _MATCHING, "most clauses", "figure 13b: CNF"),
        widest=2,
    ),
    "prefix": lines(
        Panel("prefix share", _MATCHING, "% prefixes", "figure 14a: any attributes", "any"),
        Panel("prefix share", _MATCHING, "% prefixes", "mostly words", "words"),
        Panel("prefix length", _MATCHING, "letters", "figure 14b: any attributes", "any"),
        Panel("prefix length", _MATCHING, "letters", "mostly words", "words"),
        widest=2,
    ),
}

BENCHMARK: Final = Benchmark(
    name="opindex",
    title="OpIndex (VLDB 2014): many attributes, keywords, products, CNF and DNF, prefixes, by matcher.",
    sizes="small: about a minute; paper: up to 20,000,000 subscriptions",
    scales=SCALES,
    session=OpIndexSession,
    experiments=EXPERIMENTS,
    show=_show,
    plots=PLOTS,
    options=(
        MATCHERS,
        Option(
            "data",
            "Read documents and products from this folder's news.jsonl.gz and products.jsonl.zst.",
            Path,
        ),
        Option("documents", "Read documents from this file or folder of JSON lines.", Path),
        Option(
            "text",
            "An attribute of documents that holds text, the title first, or * for all strings; may be given several times.",
            many=True,
        ),
        Option("catalogue", "Read products from this file or folder of JSON lines.", Path),
        Option(
            "words", "Read the words of prefixes from this file, one a line, the frequent ones first.", Path
        ),
        Option("memory", "The GB that matchers may take, if less than is available.", float),
    ),
)
