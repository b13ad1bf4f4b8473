"""Lengths of time as ticks, the units in which streams count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from msgspec import Struct, field

from tocsin.language.printer import term_text
from tocsin.model.errors import SubscriptionError
from tocsin.model.terms import Span, SpanUnit

LONGEST: Final = 2**63 - 1
"""The longest duration, in ticks."""

_MICROSECONDS: Final = {
    SpanUnit.MICROSECONDS: 1,
    SpanUnit.MILLISECONDS: 1_000,
    SpanUnit.SECONDS: 1_000_000,
    SpanUnit.MINUTES: 60_000_000,
    SpanUnit.HOURS: 3_600_000_000,
    SpanUnit.DAYS: 86_400_000_000,
    SpanUnit.WEEKS: 604_800_000_000,
}


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
    length = Fraction(repr(span.amount)) * _MICROSECONDS[span.unit] / tick
    if length.denominator != 1:
        raise SubscriptionError(
            f"`{term_text(span)}` is no whole number of ticks of {tick:,} microseconds; "
            "give another length, or declare the stream with a finer tick"
        )
    return length.numerator
