"""Times and lengths of time as explanations show them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tocsin.language.printer import condition_text
from tocsin.model.conditions import Condition, Predicate, map_predicates
from tocsin.model.terms import Elapsed, Literal
from tocsin.model.ticks import StreamTicks, duration_text, span_of


class ShownTimes(Struct, frozen=True):
    """Shows times of a sequence's streams: as dates and units of time, or in ticks where streams count their own."""

    ticks: StreamTicks
    stream: str | None = None
    in_units: bool = False  # the sequence itself names units of time

    def time(self, ticks: int) -> str:
        """Return a time as a text of ISO 8601, or its ticks."""
        return str(self.ticks.shown(ticks, self.stream))

    def length(self, ticks: int) -> str:
        """Return a length of time in the largest unit that fits, or in ticks.

        >>> ShownTimes(StreamTicks(), in_units=True).length(600_000_000), ShownTimes(StreamTicks()).length(5)
        ('10 minutes', '5 ticks')
        """
        if self._has_units:
            return duration_text(ticks, self.ticks.length(self.stream))
        return f"{ticks:,} tick{'s' if ticks != 1 else ''}"

    @property
    def _has_units(self) -> bool:
        return self.in_units or self.ticks.counts_dates(self.stream)

    def condition_text(self, condition: Condition) -> str:
        """Return a condition of the sequence as text, in which durations are lengths of time."""
        return condition_text(map_predicates(condition, self._with_lengths), sequence=True)

    def _with_lengths(self, predicate: Predicate) -> Predicate:
        """Return a predicate with numbers beside `duration` as lengths of time."""
        if not isinstance(predicate.subject, Elapsed) or not self._has_units:
            return predicate
        operands = tuple(
            span_of(one.value * self.ticks.length(self.stream))
            if isinstance(one, Literal) and type(one.value) is int and one.value > 0
            else one
            for one in predicate.operands
        )
        return replace(predicate, operands=operands)


IN_TICKS: Final = ShownTimes(StreamTicks())
