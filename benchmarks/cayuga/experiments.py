"""The experiments of figures 6, 7 and 8."""

from __future__ import annotations

import time
from typing import Final, get_args

from msgspec.structs import replace

from benchmarks.cayuga.session import ALL, Input, Session
from benchmarks.cayuga.workloads import feeds, technical
from benchmarks.cayuga.workloads.technical import TABLE_3, Kind, Parameters, Workload
from tocsin.sequences import MODES

_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_VARIED: Final[Kind] = "LinearStat"  # where something else than the number of subscriptions is varied
_FEW: Final = 200  # events that things are tried with
_SOME: Final = 1_000  # subscriptions, of which those of a few templates are taken
_MANY: Final = 5_000  # subscriptions for which a matcher uses all it has
_WITHOUT: Final[Kind] = "Filter"  # where parts are switched off


def compile_all(session: Session) -> float:
    """Use everything once, so that nothing is compiled while it is timed; return the seconds.

    Values are few here, so that much is found, and all modes are seen to find the same.
    """
    begun = time.perf_counter()
    often = replace(TABLE_3, domain=3)
    tried: list[tuple[str, str, Input]] = [
        (mode, kind, _largest(technical_input(kind, _SOME, often))) for kind in _KINDS for mode in MODES
    ]
    small = feeds.make_feed(_FEW, 10)
    tried += [(mode, kind, feed_input(small, kind, _FEW)) for kind in feeds.TEMPLATES for mode in MODES]
    tried.append((ALL, "many", technical_input(_VARIED, _MANY)))
    for mode, kind, given in tried:
        session.tell(session.called(mode), "compiling what is not compiled yet")
        session.try_out(kind, mode, given, _FEW)
    return time.perf_counter() - begun


def subscriptions(session: Session) -> None:
    """Figure 6(a): events a second by the number of subscriptions, for the five templates."""
    for count in session.scale.sizes:
        for kind in _KINDS:
            session.measure(kind, technical_input(kind, count), count)
    count = session.scale.by_step
    anew = replace(TABLE_3, by_step=True)
    session.measure(f"{_VARIED}, attributes by step", technical_input(_VARIED, count, anew), count)


def skew(session: Session) -> None:
    """Figure 6(b): events a second by the skew of attributes, and of values in the first step."""
    for exponent in session.scale.exponents:
        parameters = replace(TABLE_3, zipf=(exponent, *TABLE_3.zipf[1:]))
        for kind in _KINDS:
            session.measure(kind, technical_input(kind, session.scale.usual, parameters), exponent)


def selectivity(session: Session) -> None:
    """Figure 6(c): events a second by the selectivity of inequalities."""
    for share in session.scale.selectivities:
        parameters = replace(TABLE_3, selectivity=share)
        for kind in _KINDS:
            session.measure(kind, technical_input(kind, session.scale.usual, parameters), share)


def optimisation(session: Session) -> None:
    """Figure 7: events a second with parts switched off; all modes must find the same."""
    for count in session.scale.optimised:
        given = replace(technical_input(_WITHOUT, count), levels=())  # one mode merges nothing
        for mode in MODES:
            session.measure(mode, given, count, mode=mode, same=_WITHOUT)


def feed(session: Session) -> None:
    """Figure 8: events a second of the templates over feeds, by the number of subscriptions."""
    articles = session.material.feed
    for count in session.scale.feed:
        for kind in feeds.TEMPLATES:
            session.measure(kind, feed_input(articles, kind, count), count)


def technical_input(kind: Kind, count: int, parameters: Parameters = TABLE_3) -> Input:
    """Return the technical benchmark's subscriptions of a kind, and its events."""
    workload = Workload(parameters, kind)
    return Input(
        workload.subscriptions(0, count),
        workload.events,
        technical.STREAM,
        technical.TIME,
        workload.levels(count),
    )


def feed_input(articles: feeds.Feed, kind: feeds.Kind, count: int) -> Input:
    """Return subscriptions of a kind to a feed, and its articles."""
    return Input(articles.subscriptions(kind, count), articles.batches, feeds.STREAM, feeds.TIME)


def _largest(given: Input, templates: int = 3) -> Input:
    """Return the subscriptions of the templates that have the most."""
    groups = sorted(given.groups, key=len, reverse=True)[:templates]
    return replace(given, groups=groups)
