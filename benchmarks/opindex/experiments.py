"""The experiments, by the paper's figures. Each varies one thing in a workload that all matchers are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from benchmarks.opindex.plots import PLOTS
from benchmarks.opindex.scale import SCALES
from benchmarks.opindex.session import GAPS, Input, OpIndexSession
from benchmarks.opindex.workloads import table3
from benchmarks.opindex.workloads.clauses import ClauseParameters, ClauseWorkload
from benchmarks.opindex.workloads.keywords import KeywordParameters, KeywordWorkload
from benchmarks.opindex.workloads.prefix import PrefixParameters, PrefixWorkload
from benchmarks.opindex.workloads.products import ProductParameters, ProductWorkload
from benchmarks.runner.benchmark import MATCHERS, Benchmark, Experiment, Option, sweep
from benchmarks.runner.report import Report
from benchmarks.runner.subject import Contender
from benchmarks.runner.tables import show_by_place
from tocsin.cli.terminal import note
from tocsin.replay.numbered import NumberedSubscriptions

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
    events = {
        count: table3.Workload(replace(_DEFAULT, most_pairs=count, full_events=full)).events
        for count in session.scale.pairs
    }
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
    drawn, hard = (
        PrefixWorkload(one, words=session.words) for one in (usual, replace(usual, word_share=0.9))
    )
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
