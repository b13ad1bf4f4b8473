"""The length of each stream's tick, and times in ticks."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, timedelta, tzinfo
from decimal import Decimal
from enum import StrEnum
from math import isfinite
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.model.errors import KindError
from tocsin.model.terms import Span, SpanUnit
from tocsin.model.timestamps import format_rfc3339, from_microseconds
from tocsin.model.values import read_moment, read_ticks, read_value

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
    length = read_length(raw)
    if length is None or length < 1:
        raise KindError(
            f"a tick is a length of time such as `1 second`, a timedelta, or whole microseconds, not {raw!r}"
        )
    return length


def read_length(raw: object) -> int | None:
    """Return a length of time in whole microseconds, or None if it is none.

    >>> read_length("5 minutes"), read_length(timedelta(0)), read_length("soon")
    (300000000, 0, None)
    """
    if isinstance(raw, timedelta):
        length = raw // timedelta(microseconds=1)
        return length if raw == timedelta(microseconds=length) else None
    if isinstance(raw, str):
        return _parse_length(raw)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


class TimeUnit(StrEnum):
    """What the numbers in a stream's time field count: ticks, or the time since 1970."""

    TICKS = "ticks"
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


_FACTORS: Final = {
    TimeUnit.TICKS: (1, 1),
    TimeUnit.SECONDS: (1_000_000, 1),
    TimeUnit.MILLISECONDS: (1_000, 1),
    TimeUnit.MICROSECONDS: (1, 1),
    TimeUnit.NANOSECONDS: (1, 1_000),
}
# The bounds of the first number below which it counts ticks, seconds and so on; each covers the years from 1973 on.
_LIMITS: Final = (
    (10**8, TimeUnit.TICKS),
    (10**11, TimeUnit.SECONDS),
    (10**14, TimeUnit.MILLISECONDS),
    (10**17, TimeUnit.MICROSECONDS),
)
_SHORT: Final = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "µs": "microseconds",
    "ns": "nanoseconds",
}
_LARGEST: Final = 2**63 - 1
_READABLE: Final = (
    1_000  # from here on a number of a unit says little: such lengths are shown in several units
)
_SECOND: Final = 1_000_000
_log = logging.getLogger("tocsin")


def read_time_unit(raw: object) -> TimeUnit | None:
    """Return the unit of that name, or raise `KindError`; None for None.

    >>> read_time_unit("ms"), read_time_unit("second")
    (<TimeUnit.MILLISECONDS: 'milliseconds'>, <TimeUnit.SECONDS: 'seconds'>)
    """
    if raw is None:
        return None
    written = raw.lower() if isinstance(raw, str) else ""
    name = _SHORT.get(written, written)
    for unit in TimeUnit:
        if name in (unit.value, unit.value.removesuffix("s")):
            return unit
    raise KindError(f"`{raw}` is no unit of a time field; it counts {', '.join(TimeUnit)}")


def guess_unit(number: float) -> TimeUnit:
    """Return what a number in a time field counts, by its size.

    >>> guess_unit(17).value, guess_unit(1.36e9).value, guess_unit(1357020000000).value
    ('ticks', 'seconds', 'milliseconds')
    """
    return next((unit for limit, unit in _LIMITS if abs(number) < limit), TimeUnit.NANOSECONDS)


class StreamTicks:
    """The declared tick lengths of streams, in microseconds; the default is one microsecond.

    A time without a zone is one of `zone`. In a time field of a stream without a declared tick, numbers count ticks or the
    time since 1970 in a unit that the first number fixes, by its size, unless `unit` names it. A stream whose subscriptions
    use units of time (`within 10 minutes`) must be declared before its times may be ticks. So must a stream that feeds
    it through published sequences: `feeds` returns the streams that a stream feeds.
    """

    def __init__(self, *, zone: tzinfo = UTC, unit: TimeUnit | None = None) -> None:
        self.zone = zone
        self.unit = unit
        self.lengths: dict[str, int] = {}
        self.feeds: Callable[[str], Iterable[str]] = lambda stream: (stream,)
        self._units: dict[str | None, TimeUnit] = {}
        self.plain: set[str | None] = set()  # streams whose integers are ticks as they are, and need no check
        self._dated: set[str | None] = set()  # streams whose times are times since 1970 for sure
        self._unit_uses: Counter[str] = Counter()
        self.unit_uses = 0  # the sum of all counts: while it is 0, no time needs a check

    def length(self, stream: str | None) -> int:
        """Return the microseconds of a stream's tick."""
        return 1 if stream is None else self.lengths.get(stream, 1)

    def count_unit_use(self, streams: Iterable[str], by: int = 1) -> None:
        """Add `by` to the number of subscriptions that use units of time on these streams."""
        self.plain.clear()
        for stream in streams:
            self._unit_uses[stream] += by
            self.unit_uses += by

    def needs_declaration(self, stream: str | None) -> bool:
        """Return whether a subscription uses units of time on a stream whose tick is not declared."""
        if stream is None or stream in self.lengths:
            return False
        return any(self._unit_uses[reached] > 0 for reached in self.feeds(stream))

    def read(self, raw: object, stream: str | None) -> int:
        """Return a time in a stream's ticks, or raise `KindError`; a number is in ticks already."""
        moment = read_moment(raw, self.zone)
        if moment is None:
            return read_ticks(raw)
        self.saw_date(stream)
        return moment // self.length(stream)

    def read_field(self, raw: object, stream: str | None) -> int:
        """Return a time as users give it in a stream's ticks, or raise `KindError`; a number is in the stream's unit."""
        number = _number(raw)
        if number is None:
            return self.read(raw, stream)
        unit = self.unit_of(number, stream)
        if unit is TimeUnit.TICKS:
            self._check(stream)
        ticks = _count(number, unit)
        if unit is TimeUnit.MICROSECONDS or (unit is TimeUnit.TICKS and not self.unit_uses):
            self.plain.add(stream)
        return ticks

    def read_column(self, numbers: NDArray[Any], stream: str | None) -> NDArray[np.int64] | None:
        """Return a column of integers or finite floats in a stream's ticks, or None if each has to be read by itself.

        The result of each is that of `read_field`.
        """
        if not len(numbers):
            return numbers.astype(np.int64)
        unit = self.unit_of(numbers[0].item(), stream)
        if unit is TimeUnit.TICKS:
            self._check(stream)
        factor, divisor = _FACTORS[unit]
        if numbers.dtype.kind != "f":
            largest = max(int(numbers.max()), -int(numbers.min()))
            if largest * factor > _LARGEST:
                return None
            whole = numbers.astype(np.int64)
            return whole if factor == divisor else whole * factor // divisor
        if unit is TimeUnit.TICKS:
            return None
        with np.errstate(over="ignore"):  # infinity does not fit either
            scaled = np.rint(numbers * factor if factor > 1 else numbers / divisor)
        return scaled.astype(np.int64) if np.abs(scaled).max() < _LARGEST else None

    def saw_date(self, stream: str | None) -> None:
        """Remember that a time of a stream was given as a date."""
        self._dated.add(stream)

    def fixed_units(self) -> list[tuple[str | None, str]]:
        """Return what the numbers in time fields count, by stream, as far as a first number has fixed it."""
        return [(stream, unit.value) for stream, unit in self._units.items()]

    def fix_units(self, units: Iterable[tuple[str | None, str]]) -> None:
        """Take what `fixed_units` returned."""
        for stream, unit in units:
            self._units[stream] = TimeUnit(unit)
            if unit != TimeUnit.TICKS:
                self._dated.add(stream)

    def counts_dates(self, stream: str | None) -> bool:
        """Tell whether the times of a stream were given as dates, or as numbers that count from 1970."""
        return stream in self._dated

    def is_dated(self, ticks: int, stream: str | None) -> bool:
        """Tell whether a time of a stream counts from 1970, as far as can be seen from it and those before."""
        if stream in self._dated:
            return True
        if self._units.get(stream) is TimeUnit.TICKS:
            return False
        return guess_unit(ticks * self.length(stream)) in (TimeUnit.MICROSECONDS, TimeUnit.NANOSECONDS)

    def shown(self, ticks: int, stream: str | None) -> int | str:
        """Return a time of a stream as people read it: a text of ISO 8601, or the ticks of a stream that counts its own."""
        if not self.is_dated(ticks, stream):
            return ticks
        try:
            return format_rfc3339(from_microseconds(ticks * self.length(stream)))
        except OverflowError:
            return ticks

    def unit_of(self, number: float, stream: str | None) -> TimeUnit:
        """Return what the numbers in a stream's time field count; the first number that is a time decides."""
        if stream is not None and stream in self.lengths:
            return TimeUnit.TICKS
        found = self._units.get(stream)
        if found is None:
            found = self.unit or guess_unit(number)
            if _is_time(number, found):
                self._fix(number, stream, found)
        return found

    def has_unit(self, stream: str | None) -> bool:
        """Tell whether it is known what the numbers in a stream's time field count."""
        return stream in self.lengths or stream in self._units

    def _fix(self, number: float, stream: str | None, unit: TimeUnit) -> None:
        self._units[stream] = unit
        if unit is not TimeUnit.TICKS:
            self._dated.add(stream)
            if self.unit is None:
                self._say(number, stream, unit)

    def _say(self, number: float, stream: str | None, unit: TimeUnit) -> None:
        factor, divisor = _FACTORS[unit]
        try:
            example = f"; the first, {number}, is {format_rfc3339(from_microseconds(int(number * factor // divisor)))}"
        except (OverflowError, ValueError):
            example = ""
        of = "" if stream is None else f" of stream `{stream}`"
        _log.info("the times%s are numbers, which are read as %s since 1970%s", of, unit.value, example)

    def _check(self, stream: str | None) -> None:
        """Raise `KindError` for ticks in a stream whose tick must be declared first."""
        if self.unit_uses and self.needs_declaration(stream):
            raise KindError(
                f"a sequence uses units of time on stream `{stream}`, whose tick has no declared length; declare it before "
                f'subscribing, with `engine.stream("{stream}", tick="1 second")` or, at the command line, '
                f"`--tick '{stream}=1 second'`; or give times as datetimes, or name the unit of the numbers: "
                "`time_unit` or `--time-unit`"
            )


def _count(number: float, unit: TimeUnit) -> int:
    """Return a number of a unit in ticks, or raise `KindError`; columns of numbers are read alike, to the last digit."""
    factor, divisor = _FACTORS[unit]
    if unit is TimeUnit.TICKS:
        return read_ticks(number)
    if isinstance(number, int):
        return read_ticks(number * factor // divisor)
    scaled = number * factor if factor > 1 else number / divisor
    if not isfinite(scaled):
        raise KindError(f"{number} is no time")
    return read_ticks(round(scaled))


def _is_time(number: float, unit: TimeUnit) -> bool:
    try:
        _count(number, unit)
    except KindError:
        return False
    return True


def _number(raw: object) -> int | float | None:
    """Return a number as Python's int or float, and None for anything else."""
    if type(raw) is int or type(raw) is float:
        return raw
    if isinstance(raw, (np.integer, np.floating, Decimal)) or (
        isinstance(raw, (int, float)) and type(raw) is not bool
    ):
        value = read_value(raw)
        return value if isinstance(value, (int, float)) else None
    return None


def duration_text(ticks: int, length: int = 1) -> str:
    """Return a length of time, in ticks of so many microseconds, in the largest unit that counts it in whole numbers.

    If that takes a large number, it is in days, hours, minutes and seconds.

    >>> duration_text(86_400_000_000), duration_text(90, 1_000_000), duration_text(1)
    ('1 day', '90 seconds', '1 microsecond')
    >>> duration_text(86_400_000_001), duration_text(12_345, 1_000_000)
    ('1 day 0.000001 seconds', '3 hours 25 minutes 45 seconds')
    """
    microseconds = ticks * length
    span = span_of(microseconds)
    if abs(span.amount) < _READABLE or span.unit in (SpanUnit.DAYS, SpanUnit.WEEKS) or microseconds < _SECOND:
        return _counted(int(span.amount), span.unit)
    parts = []
    for unit in (SpanUnit.DAYS, SpanUnit.HOURS, SpanUnit.MINUTES):
        count, microseconds = divmod(microseconds, UNITS[unit])
        if count:
            parts.append(_counted(count, unit))
    seconds, rest = divmod(microseconds, _SECOND)
    if rest:
        parts.append(f"{seconds}.{rest:06}".rstrip("0") + " seconds")
    elif seconds:
        parts.append(_counted(seconds, SpanUnit.SECONDS))
    return " ".join(parts)


def _counted(count: int, unit: SpanUnit) -> str:
    return f"{count:,} {unit.value if count != 1 else unit.value.removesuffix('s')}"


def span_of(microseconds: int) -> Span:
    """Return a length of time in the largest unit that counts it in whole numbers."""
    for unit, size in reversed(UNITS.items()):
        if microseconds and microseconds % size == 0:
            return Span(microseconds // size, unit)
    return Span(microseconds, SpanUnit.MICROSECONDS)


def _parse_length(text: str) -> int | None:
    """Return the microseconds of a length such as `5 minutes`, or None if it is none."""
    found = _SPAN.fullmatch(text)
    unit = "" if found is None else found[2].lower().removesuffix("s") + "s"
    if found is None or unit not in set(SpanUnit) or (size := UNITS.get(SpanUnit(unit))) is None:
        return None
    return int(found[1] or 1) * size
