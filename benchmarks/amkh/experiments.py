"""The experiments: figure 1, the studies behind the rules for G and B, and the time beside other matchers."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isqrt
from typing import Final

from msgspec.structs import replace

from benchmarks.amkh.session import Found, Session
from benchmarks.amkh.workload import FIGURE_1, Parameters
from benchmarks.runner.subject import Contender

AUTOMATIC: Final = "amkh"  # which chooses by itself
_AS_PUBLISHED: Final = {"split_weights": False, "ranked_classes": False}
_FIRST_CLASSES: Final = 2  # B, where G is varied


def figure_1(session: Session) -> None:
    """Figure 1: unmatched subscriptions examined by the range of the constants, for tables of several sizes."""
    for count in session.scale.sizes:
        for ratio in session.scale.ratios:
            buckets = prime(max(round(count / ratio), 2))
            session.begin(f"figure 1: {count:,} subscriptions, {ratio:g} to a bucket")
            for highest in session.scale.highest:
                for contender in session.taking_part(
                    [_mkh(buckets), _amkh(1, 2, buckets), _amkh(0, 2, buckets)]
                ):
                    session.measure(contender, replace(FIGURE_1, highest=highest), highest, count)


def hashed(session: Session) -> None:
    """Compare numbers of hashed general attributes (G), by the number of clauses on equality-only attributes."""
    for name, small in (
        ("any equality-only attributes", None),
        ("a small set of them", session.scale.small_set),
    ):
        session.begin(f"best G: {name}")
        for count in session.scale.equality_clauses:
            if small is not None and not 1 <= count <= small:
                continue
            parameters = replace(
                FIGURE_1,
                equality_clauses=count,
                fixed_equality=min(count, 1),
                equality_set=small,
                general_clauses=2,
                fixed_general=2,
            )
            buckets = prime(session.scale.usual)
            sweep = {f"{number}": _amkh(number, _FIRST_CLASSES, buckets) for number in session.scale.hashed}
            _sweep(session, parameters, count, sweep)


def classes(session: Session) -> None:
    """Compare numbers of classes (B), by the share of values that an inequality holds for."""
    session.begin("best B")
    buckets = prime(session.scale.usual)
    for share in session.scale.selectivities:
        parameters = replace(FIGURE_1, selectivity=share / 100)
        sweep = {_written(number): _amkh(1, number, buckets) for number in session.scale.classes}
        _sweep(session, parameters, share, sweep)


def times(session: Session) -> None:
    """Compare the time and the memory of AMKH with those of other matchers, on figure 1's workload."""
    session.begin("time")
    for count in session.scale.sizes:
        for contender in [*session.taking_part([_amkh(1, 2), _amkh(0, 2)]), *session.contenders]:
            session.measure(contender, FIGURE_1, count, count, building=True)


def _sweep(session: Session, parameters: Parameters, at: float, contenders: Mapping[str, Contender]) -> None:
    """Measure all contenders and the automatic choice; record which was best, and what the choice cost beside it."""
    found: dict[str, Found] = {}
    for value, contender in contenders.items():
        for one in session.taking_part([contender]):
            found[value] = session.measure(one, parameters, at, session.scale.usual)
    for automatic in session.taking_part([Contender.of(AUTOMATIC)]):
        chosen = session.measure(automatic, parameters, at, session.scale.usual)
        if not found:
            continue
        fewest = min(found, key=lambda value: found[value].unmatched or 0.0)
        fastest = min(found, key=lambda value: found[value].microseconds)
        best = Contender("best of these", AUTOMATIC)
        session.record(
            "unmatched examined", best, at, (found[fewest].unmatched or 0.0, "an event"), of=fewest
        )
        session.record("matching time", best, at, (found[fastest].microseconds, "µs"), of=fastest)
        share = chosen.microseconds / max(found[fastest].microseconds, 1e-9)
        session.record("time over the best", automatic, at, (share, "times"), best=fastest)


def _amkh(general: int, classes: float, buckets: int | None = None) -> Contender:
    options: dict[str, float | bool] = {"general": general, "classes": classes, **_AS_PUBLISHED}
    if buckets is not None:
        options["buckets"] = buckets
    return Contender(name_of(general, classes), AUTOMATIC, options)


def name_of(general: int, classes: float) -> str:
    """Return a method as the paper writes it.

    >>> name_of(1, 2), name_of(0, 2)
    ('AMKH(1,2)', 'AMKH(0,-)')
    """
    return f"AMKH({general},{_written(classes)})" if general else "AMKH(0,-)"


def _written(classes: float) -> str:
    return "∞" if classes == inf else f"{classes:g}"


def _mkh(buckets: int) -> Contender:
    return Contender("MKH", "mkh", {"split_weights": False, "buckets": buckets})


def prime(least: int) -> int:
    """Return the first prime number that is not less.

    >>> prime(100), prime(101), prime(2)
    (101, 101, 2)
    """
    number = max(least, 2)
    while any(number % divisor == 0 for divisor in range(2, isqrt(number) + 1)):
        number += 1
    return number
