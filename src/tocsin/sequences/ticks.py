"""Lengths of time in ticks, the units in which streams count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

from tocsin.language.printer import term_text
from tocsin.model.conditions import leaves
from tocsin.model.errors import SubscriptionError
from tocsin.model.queries import Sequence, computations_of, conditions_of, sequences_in
from tocsin.model.terms import Span, SpanUnit, Term, subterms
from tocsin.model.ticks import UNITS

LONGEST: Final = 2**63 - 1
"""The longest duration, in ticks."""


def common_tick(ticks: Mapping[str, int], streams: Iterable[str]) -> int:
    """Return the microseconds of the tick that all these streams share, or raise `SubscriptionError`.

    `ticks` has the microseconds of a tick of each declared stream; a tick of any other stream is a microsecond. A
    published stream counts like the streams it was made of, and is declared like them.
    """
    by_tick: dict[int, str] = {}
    for stream in sorted(streams):
        by_tick.setdefault(ticks.get(stream, 1), stream)
    if len(by_tick) > 1:
        (first, one), (second, other) = list(by_tick.items())[:2]
        raise SubscriptionError(
            f"a tick of `{one}` is {first:,} microseconds, one of `{other}` {second:,}: a sequence reads streams "
            "that count alike; declare both with the same tick"
        )
    return next(iter(by_tick), 1)


def ticks_in(span: Span, tick: int) -> int:
    """Return a length of time in ticks of `tick` microseconds, or raise `SubscriptionError` if that is no whole number.

    >>> ticks_in(Span(2.5, SpanUnit.MINUTES), 1_000_000)
    150
    """
    if span.unit is SpanUnit.TICKS:
        return int(span.amount)
    # `repr` gives the float as it was written: 0.1 seconds are exactly 100,000 microseconds.
    length = Fraction(repr(span.amount)) * UNITS[span.unit] / tick
    if length.denominator != 1:
        raise SubscriptionError(
            f"`{term_text(span)}` is no whole number of ticks of {tick:,} microseconds; "
            "give another length, or declare the stream with a finer tick"
        )
    return length.numerator


def asks_in_units(query: Sequence) -> bool:
    """Tell whether a sequence has a length of time in minutes, hours and the like, not in ticks."""
    return any(
        isinstance(part, Span) and part.unit is not SpanUnit.TICKS
        for sequence in sequences_in(query)
        for term in _terms(sequence)
        for part in subterms(term)
    )


def _terms(query: Sequence) -> Iterator[Term]:
    """Yield the terms of a sequence, but not those of sequences in parentheses."""
    if query.within is not None:
        yield query.within
    for step in query.steps:
        for condition in conditions_of(step):
            for predicate in leaves(condition):
                yield from (predicate.subject, *predicate.operands)
        yield from (computation.term for computation in computations_of(step))
    yield from (item.term for item in query.select)
