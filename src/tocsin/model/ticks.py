"""The length of each stream's tick, and times in ticks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from tocsin.model.errors import KindError
from tocsin.model.terms import SpanUnit
from tocsin.model.values import read_time

Tick: TypeAlias = str | timedelta | int
"""A length of time: a text such as `1 second`, a timedelta, or a number of microseconds."""

UNITS: Final = {
    SpanUnit.MICROSECONDS: 1,
    SpanUnit.MILLISECONDS: 1_000,
    SpanUnit.SECONDS: 1_000_000,
    SpanUnit.MINUTES: 60_000_000,
    SpanUnit.HOURS: 3_600_000_000,
    SpanUnit.DAYS: 86_400_000_000,
    SpanUnit.WEEKS: 604_800_000_000,
}
"""Microseconds of each unit."""

_SPAN: Final = re.compile(r"\s*(?:([0-9]{1,18})\s+)?([a-z]+)\s*", re.IGNORECASE)


def read_tick(raw: Tick) -> int:
    """Return the length of a tick in microseconds, or raise `KindError` if it is not a length of time.

    >>> read_tick("1 second"), read_tick("day"), read_tick(timedelta(milliseconds=5))
    (1000000, 86400000000, 5000)
    """
    if isinstance(raw, timedelta):
        length = raw // timedelta(microseconds=1)
        if raw != timedelta(microseconds=length):
            length = 0
    elif isinstance(raw, int) and not isinstance(raw, bool):
        length = raw
    else:
        length = _parse_length(raw) if isinstance(raw, str) else 0
    if length < 1:
        raise KindError(
            f"a tick is a length of time such as `1 second`, a timedelta, or whole microseconds, not {raw!r}"
        )
    return length


class StreamTicks:
    """The declared tick lengths of streams, in microseconds; the default is one microsecond.

    A stream whose subscriptions use units of time (`within 10 minutes`) must be declared before its times may be
    integers. So must a stream that feeds it through published sequences: `feeds` returns the streams that a
    stream feeds.
    """

    def __init__(self) -> None:
        self.lengths: dict[str, int] = {}
        self.feeds: Callable[[str], Iterable[str]] = lambda stream: (stream,)
        self._unit_uses: Counter[str] = Counter()
        self.unit_uses = 0  # the sum of all counts: while it is 0, no time needs a check

    def length(self, stream: str | None) -> int:
        """Return the microseconds of a stream's tick."""
        return 1 if stream is None else self.lengths.get(stream, 1)

    def count_unit_use(self, streams: Iterable[str], by: int = 1) -> None:
        """Add `by` to the number of subscriptions that use units of time on these streams."""
        for stream in streams:
            self._unit_uses[stream] += by
            self.unit_uses += by

    def needs_declaration(self, stream: str | None) -> bool:
        """Return whether a subscription uses units of time on a stream whose tick is not declared."""
        if stream is None or stream in self.lengths:
            return False
        return any(self._unit_uses[reached] > 0 for reached in self.feeds(stream))

    def read(self, raw: object, stream: str | None) -> int:
        """Return a time in a stream's ticks, or raise `KindError`; an integer is in ticks already."""
        ticks = read_time(raw)
        return ticks if _is_counted(raw) else ticks // self.length(stream)

    def check(self, raw: object, stream: str | None) -> None:
        """Raise `KindError` for a time that is an integer in a stream whose tick must be declared first."""
        if self.needs_declaration(stream) and _is_counted(raw):
            raise KindError(
                f"a sequence uses units of time on stream `{stream}`, whose tick has no declared length; declare it before "
                f'subscribing, with `engine.stream("{stream}", tick="1 second")` or, at the command line, '
                f"`--tick '{stream}=1 second'`; or give times as datetimes"
            )


def _is_counted(raw: object) -> bool:
    return not isinstance(raw, (str, datetime))


def _parse_length(text: str) -> int:
    """Return the microseconds of a length such as `5 minutes`, or 0 if it is none."""
    found = _SPAN.fullmatch(text)
    if found is None:
        return 0
    unit = found[2].lower().removesuffix("s") + "s"
    return int(found[1] or 1) * UNITS.get(SpanUnit(unit), 0) if unit in set(SpanUnit) else 0
