"""The experiments, by the paper's figures. Each varies one thing, and gives matchers what it draws so."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from benchmarks.opindex.inputs import DrawEvents, Input
from benchmarks.opindex.session import Session
from benchmarks.opindex.workloads import table3
from benchmarks.opindex.workloads.clauses import ClauseParameters, ClauseWorkload
from benchmarks.opindex.workloads.keywords import KeywordParameters, KeywordWorkload
from benchmarks.opindex.workloads.prefix import PrefixParameters, PrefixWorkload
from benchmarks.opindex.workloads.products import ProductParameters, ProductWorkload
from benchmarks.runner.subject import Contender
from tocsin.replay.numbered import NumberedSubscriptions

_DEFAULT = table3.Parameters()
_LONG = 138  # words, of which about 123 are different


def _table3(parameters: table3.Parameters) -> Input:
    workload = table3.Workload(parameters)
    return Input(workload.subscriptions, {"": workload.events})


def attributes(session: Session) -> None:
    """Figure 1: the number of attributes."""
    for count in session.scale.attributes:
        session.compare(_table3(replace(_DEFAULT, attributes=count)), count, session.scale.usual)


def capacities(session: Session) -> None:
    """Figure 7: what BE-Tree's leaves hold, if that matcher takes part."""
    for count in session.scale.capacities:
        for contender in session.taking_part((Contender("be-tree", "be-tree", {"capacity": count}),)):
            session.measure(contender, _table3(_DEFAULT), count, session.scale.usual)


def subscriptions(session: Session) -> None:
    """Figures 8a, 9a and 10a: the number of subscriptions."""
    for count in session.scale.sizes:
        session.compare(_table3(_DEFAULT), count, count, growing=True)


def predicates(session: Session) -> None:
    """Figures 9b and 10b: the largest subscription."""
    for count in session.scale.predicates:
        session.compare(_table3(replace(_DEFAULT, most_predicates=count)), count, session.scale.usual)


def pairs(session: Session) -> None:
    """Figure 10c: the largest event, of sizes up to that."""
    _pairs(session, full=False)


def full_events(session: Session) -> None:
    """Figure 10c, if it is read so that all events are that large."""
    _pairs(session, full=True)


def _pairs(session: Session, *, full: bool) -> None:
    events: dict[str | int, DrawEvents] = {
        count: table3.Workload(replace(_DEFAULT, most_pairs=count, full_events=full)).events
        for count in session.scale.pairs
    }
    given = Input(table3.Workload(_DEFAULT).subscriptions, events)
    session.compare(given, "all", session.scale.usual)


def equal_shares(session: Session) -> None:
    """Figure 10d: the share of `=`."""
    for share in session.scale.equal_shares:
        session.compare(_table3(replace(_DEFAULT, equal_share=share / 100)), share, session.scale.usual)


def values(session: Session) -> None:
    """Figures 8b and 10e: the number of values."""
    for count in session.scale.values:
        session.compare(_table3(replace(_DEFAULT, values=count)), count, session.scale.usual)


def exponents(session: Session) -> None:
    """Figure 10f: Zipf's exponent."""
    for exponent in session.scale.exponents:
        session.compare(_table3(replace(_DEFAULT, zipf=exponent)), exponent, session.scale.usual)


def input_a(session: Session) -> None:
    """Draw what the targets are set for: the defaults, with events of up to 60 attributes."""
    for count in session.scale.input_a:
        session.compare(_table3(replace(_DEFAULT, most_pairs=60)), count, count, growing=True)


def keywords(session: Session) -> None:
    """Figure 11 with `=`: short and long documents."""
    _keywords(session, intervals=False)


def keyword_intervals(session: Session) -> None:
    """Figure 11 with intervals: short and long documents."""
    _keywords(session, intervals=True)


def _keywords(session: Session, *, intervals: bool) -> None:
    corpus = session.material.corpus
    short = KeywordWorkload(corpus, KeywordParameters(intervals=intervals))
    long = KeywordWorkload(corpus, KeywordParameters(intervals=intervals, long=True, document_words=_LONG))
    given = Input(short.subscriptions, {"short": short.events, "long": long.events})
    for count in session.scale.queries:
        session.compare(given, count, count, growing=True)


def products(session: Session) -> None:
    """Figure 12 by the number of subscriptions: attributes drawn independently, as the paper draws them."""
    _products(session, ProductParameters())


def products_from_one(session: Session) -> None:
    """Figure 12 by the number of subscriptions: attributes and operands of one product, so that there are matches."""
    _products(session, ProductParameters(from_one=True))


def _products(session: Session, parameters: ProductParameters) -> None:
    workload = ProductWorkload(session.material.catalogue, parameters)
    for count in session.scale.products:
        session.compare(Input(workload.subscriptions, {"": workload.events}), count, count, growing=True)


def product_predicates(session: Session) -> None:
    """Figure 12 by the largest subscription."""
    for count in session.scale.predicates:
        workload = ProductWorkload(session.material.catalogue, ProductParameters(most_predicates=count))
        given = Input(workload.subscriptions, {"": workload.events})
        session.compare(given, count, session.scale.product_usual)


def disjunctive(session: Session) -> None:
    """Figure 13a: the number of subscriptions in DNF."""
    for count in session.scale.forms:
        session.compare(_disjunctive(ClauseParameters()), count, count, growing=True)


def conjunctive(session: Session) -> None:
    """Figure 13a: the number of subscriptions in CNF, for matchers that hold clauses."""
    for contender in session.holding_clauses():
        for count in session.scale.forms:
            session.measure(contender, _conjunctive(ClauseParameters()), count, count, growing=True)


def disjunctive_clauses(session: Session) -> None:
    """Figure 13b: the number of clauses in DNF."""
    for count in session.scale.clauses:
        given = _disjunctive(ClauseParameters(most_clauses=count))
        session.compare(given, count, session.scale.form_usual)


def conjunctive_clauses(session: Session) -> None:
    """Figure 13b: the number of clauses in CNF, for matchers that hold clauses."""
    for contender in session.holding_clauses():
        for count in session.scale.clauses:
            given = _conjunctive(ClauseParameters(most_clauses=count))
            session.measure(contender, given, count, session.scale.form_usual)


def _disjunctive(parameters: ClauseParameters) -> Input:
    workload = ClauseWorkload(parameters)

    def draw(begin: int, end: int) -> Iterator[NumberedSubscriptions]:
        return (batch.any_of_all() for batch in workload.subscriptions(begin, end))

    return Input(draw, {"": workload.events})


def _conjunctive(parameters: ClauseParameters) -> Input:
    workload = ClauseWorkload(parameters)
    return Input(workload.subscriptions, {"": workload.events})


def prefix_shares(session: Session) -> None:
    """Figure 14a: the share of prefixes."""
    for share in session.scale.prefix_shares:
        _prefix(session, PrefixParameters(prefix_share=share / 100), share)


def prefix_lengths(session: Session) -> None:
    """Figure 14b: their length."""
    for length in session.scale.prefix_lengths:
        _prefix(session, PrefixParameters(prefix_length=length), length)


def _prefix(session: Session, parameters: PrefixParameters, at: int) -> None:
    words = session.material.words
    usual = PrefixWorkload(parameters, words=words)
    hard = PrefixWorkload(replace(parameters, word_share=0.9), words=words)
    given = Input(usual.subscriptions, {"any": usual.events, "words": hard.events})
    session.compare(given, at, session.scale.prefixes)
