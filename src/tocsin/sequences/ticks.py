"""Lengths of time as ticks, the units in which streams count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

from msgspec import Struct, field

from tocsin.language.printer import term_text
from tocsin.model.conditions import leaves
from tocsin.model.errors import SubscriptionError
from tocsin.model.queries import Next, Sequence, conditions_of
from tocsin.model.terms import Aggregate, Arithmetic, Negative, Span, SpanUnit, Term
from tocsin.model.ticks import UNITS

LONGEST: Final = 2**63 - 1
"""The longest duration, in ticks."""


class Ticks(Struct, frozen=True):
    """How many microseconds a tick of each declared stream has; one of any other stream is a microsecond.

    What is published under a name counts as the streams do that it was made of, and is declared like them.
    """

    ticks_of: Mapping[str, int] = field(default_factory=dict)

    def common(self, streams: Iterable[str]) -> int:
        """Return the microseconds of a tick that all these streams have, or raise `SubscriptionError`."""
        by_tick: dict[int, str] = {}
        for stream in sorted(streams):
            by_tick.setdefault(self.ticks_of.get(stream, 1), stream)
        if len(by_tick) > 1:
            (first, one), (second, other) = list(by_tick.items())[:2]
            raise SubscriptionError(
                f"a tick of `{one}` is {first:,} microseconds, one of `{other}` {second:,}: a sequence reads streams "
                "that count alike; declare both with the same tick"
            )
        return next(iter(by_tick), 1)


def ticks_in(span: Span, tick: int) -> int:
    """Return a length of time in ticks of so many microseconds, or raise `SubscriptionError` where it has a fraction.

    >>> ticks_in(Span(2.5, SpanUnit.MINUTES), 1_000_000)
    150
    """
    if span.unit is SpanUnit.TICKS:
        return int(span.amount)
    # A float is taken as it was written: 0.1 seconds are 100,000 microseconds.
    length = Fraction(repr(span.amount)) * UNITS[span.unit] / tick
    if length.denominator != 1:
        raise SubscriptionError(
            f"`{term_text(span)}` is no whole number of ticks of {tick:,} microseconds; "
            "give another length, or declare the stream with a finer tick"
        )
    return length.numerator


def asks_in_units(query: Sequence) -> bool:
    """Tell whether a sequence has a length of time in minutes, hours and the like, not in ticks."""
    within = () if query.within is None else (query.within,)
    return any(
        isinstance(term, Span) and term.unit is not SpanUnit.TICKS for term in (*within, *_terms(query))
    ) or any(isinstance(step.source, Sequence) and asks_in_units(step.source) for step in query.steps)


def _terms(query: Sequence) -> Iterator[Term]:
    """Return every term of a sequence's own steps, and the terms inside them."""
    for step in query.steps:
        for condition in conditions_of(step):
            for predicate in leaves(condition):
                for term in (predicate.subject, *predicate.operands):
                    yield from _subterms(term)
        if not isinstance(step, Next):
            for computation in step.compute:
                yield from _subterms(computation.term)
    for item in query.select:
        yield from _subterms(item.term)


def _subterms(term: Term) -> Iterator[Term]:
    yield term
    if isinstance(term, Arithmetic):
        yield from _subterms(term.left)
        yield from _subterms(term.right)
    elif isinstance(term, Negative):
        yield from _subterms(term.term)
    elif isinstance(term, Aggregate) and term.argument is not None:
        yield from _subterms(term.argument)
