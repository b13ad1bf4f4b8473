"""The distribution of the values of one attribute and kind: the frequent ones by count, the rest in bins."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct

from tocsin.model.values import Kind, Value

Counts = Iterable[tuple[Any, int]]
"""Values with their number of events."""

_by_value, _by_count = itemgetter(0), itemgetter(1)
_HALFWAY: Final = 0.5  # the assumed place of a value in its bin, where nothing better is known


class Distribution(Struct, frozen=True):
    """The values that events have in one attribute, of one kind.

    `frequent` holds the most frequent values with exact counts, the most frequent first. The other values are in bins:
    `depths[i]` events have a value above `bounds[i]`, up to and including `bounds[i + 1]`; the first bin includes its lower
    bound too. Bins are about equally deep. No value is outside the bounds.
    """

    kind: Kind
    count: int  # events
    distinct: int  # values
    frequent: Mapping[Value, int] = {}
    bounds: tuple[Value, ...] = ()
    depths: tuple[int, ...] = ()

    @property
    def rest(self) -> int:
        """Return the number of events with a value that is not frequent."""
        return sum(self.depths)

    @property
    def of_a_rare_value(self) -> float:
        """Return the average number of events with a value that is not frequent."""
        return self.rest / max(self.distinct - len(self.frequent), 1)

    def equal_to(self, value: Value) -> float:
        """Return the number of events with this value: exact if it is frequent, else the average of the rest."""
        found = self.frequent.get(value)
        if found is not None:
            return found
        bounds: Sequence[Any] = self.bounds
        return self.of_a_rare_value if bounds and bounds[0] <= value <= bounds[-1] else 0.0

    def below(self, value: Value) -> float:
        """Return the number of events with a lesser value."""
        frequent: Mapping[Any, int] = self.frequent
        counted = sum(count for other, count in frequent.items() if other < value)
        rare = 0.0 if value in self.frequent else self.equal_to(value)
        return counted + max(self._rest_up_to(value) - rare, 0.0)

    def up_to(self, value: Value) -> float:
        """Return the number of events with this value or a lesser one."""
        frequent: Mapping[Any, int] = self.frequent
        counted = sum(count for other, count in frequent.items() if other <= value)
        return counted + self._rest_up_to(value)

    def _rest_up_to(self, value: Any) -> float:
        """Return about how many events have a value up to `value` that is not frequent."""
        bounds: Sequence[Any] = self.bounds
        after = bisect_left(bounds, value)
        if after == len(bounds):
            return self.rest
        if after == 0:
            return min(self.of_a_rare_value, self.depths[0]) if bounds[0] == value else 0.0
        before = sum(self.depths[: after - 1])
        return before + self.depths[after - 1] * _share(bounds[after - 1], value, bounds[after])


def distribution(
    kind: Kind, counts: Counts, *, top: int, bins: int, rest: Counts = (), distinct: int | None = None
) -> Distribution:
    """Return the distribution of these values.

    `counts` holds each value once. `rest` holds further values that are less frequent than `top` others; a value may
    represent all values after the one before it, as `condensed` returns them. Then `distinct` is needed.
    """
    values = list(counts)
    frequent, left = most_frequent(values, top)
    bounds, depths = _histogram(sorted([*left, *rest], key=_by_value), bins)
    number = len(values) if distinct is None else distinct
    total = sum(frequent.values()) + sum(depths)
    return Distribution(kind, total, number, frequent, bounds, depths)


def most_frequent(
    counts: Sequence[tuple[Any, int]], top: int
) -> tuple[dict[Any, int], list[tuple[Any, int]]]:
    """Return the `top` most frequent values, the lesser first among equals, and the others."""
    ordered = sorted(counts, key=_by_value)
    ordered.sort(key=_by_count, reverse=True)
    return dict(ordered[:top]), ordered[top:]


def condensed(counts: Counts, most: int) -> list[tuple[Any, int]]:
    """Return up to `most` values that represent all of them, ascending, as the rest of `distribution`.

    The least value represents only itself. At most one event in `most - 1` lies between neighbours.
    """
    ordered = sorted(counts, key=_by_value)
    if len(ordered) <= most:
        return ordered
    bounds, depths = _histogram(ordered[1:], most - 1)
    return [ordered[0], *zip(bounds[1:], depths, strict=True)]


def _histogram(ordered: Sequence[tuple[Any, int]], bins: int) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Return the bounds and depths of about equally deep bins."""
    total = sum(count for _, count in ordered)
    if not total:
        return (), ()
    bounds, depths = [ordered[0][0]], []
    done = filled = 0
    for value, count in ordered:
        mark = done * bins // total + 1  # the first quantile ahead
        done += count
        filled += count
        if done * bins >= total * mark:
            bounds.append(value)
            depths.append(filled)
            filled = 0
    return tuple(bounds), tuple(depths)


def _share(low: Any, value: Any, high: Any) -> float:
    """Return the share of a bin up to a value, assuming that its values are spread evenly."""
    if value == high:
        return 1.0
    if isinstance(value, str):
        return _HALFWAY
    try:
        share = (value - low) / (high - low)
    except OverflowError:  # an integer beyond the floats
        return _HALFWAY
    return min(max(share, 0.0), 1.0) if math.isfinite(share) else _HALFWAY
