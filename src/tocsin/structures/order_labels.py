"""Labels: numbers for values, in the order of the values, so that kernels can compare what only Python can.

A new value gets a label between those of its neighbours. Where no number is left between two neighbours, all values get new
labels, evenly spread; so a label costs a search on average, whatever the order in which values come.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct

from tocsin.structures.array_types import Float64s

_WIDEST: Final = 2**53  # floats hold every integer up to it
_STEP: Final = 2**24  # between the last label and a value beyond it
_RUN: Final = 8  # of values that come in order, each takes 2**-8 of the room that is left
_CHUNK: Final = 512  # values of a sorted chunk, twice as many at most


class Comparable(Protocol):
    """A hashable value with an order."""

    def __lt__(self, other: Any, /) -> bool:
        """Tell whether it comes before another value."""


Value = TypeVar("Value", bound=Comparable)


class Relabelling(Struct, frozen=True):
    """All labels as they were, ascending, and as they are now, in the same order."""

    old: Float64s
    new: Float64s

    def apply(self, labels: Float64s) -> Float64s:
        """Return labels as they are now; NaN stays."""
        if not len(self.old):
            return labels
        places = np.minimum(np.searchsorted(self.old, labels), len(self.old) - 1)
        return np.where(np.isnan(labels), labels, self.new[places])


class OrderLabels(Generic[Value]):
    """Values by label and labels by value, with counts of uses; a value whose last use is released is forgotten.

    >>> labels = OrderLabels[str]()
    >>> _ = labels.retain(["pear", "apple", "fig"])
    >>> labels.label("apple") < labels.label("fig") < labels.label("pear")
    True
    >>> labels.value(labels.label("fig"))
    'fig'
    """

    def __init__(self) -> None:
        self._labels: dict[Value, int] = {}
        self._values: dict[int, Value] = {}
        self._uses: Counter[Value] = Counter()
        self._sorted = _SortedValues[Value]()
        self._latest: Value | None = None

    def __len__(self) -> int:
        return len(self._labels)

    def label(self, value: Value) -> float:
        """Return the label of a value that is retained."""
        return float(self._labels[value])

    def value(self, label: float) -> Value:
        """Return the value of a label."""
        return self._values[int(label)]

    def retain(self, values: Iterable[Value]) -> Relabelling | None:
        """Count a use of each value; return how labels changed, None if all are as they were."""
        uses = Counter(values)
        self._uses.update(uses)
        fresh = sorted(value for value in uses if value not in self._labels)
        if not fresh:
            return None
        if len(fresh) > len(self._labels):  # spreading all is quicker, and leaves the most room
            for value in fresh:
                self._sorted.add(value)
            return self._spread()
        for position, value in enumerate(fresh):
            label = self._between(*self._sorted.add(value))
            if label is None:
                for other in fresh[position + 1 :]:
                    self._sorted.add(other)
                return self._spread()
            self._labels[value], self._values[label], self._latest = label, value, value
        return None

    def release(self, values: Iterable[Value]) -> None:
        """Release one use of each value."""
        for value in values:
            self._uses[value] -= 1
            if not self._uses[value]:
                del self._uses[value]
                del self._values[self._labels.pop(value)]
                self._sorted.remove(value)

    def _between(self, before: Value | None, after: Value | None) -> int | None:
        """Return a label between those of two neighbours, None if there is no room."""
        if before is None and after is None:
            return 0
        low = -_WIDEST - 1 if before is None else self._labels[before]
        high = _WIDEST + 1 if after is None else self._labels[after]
        room = high - low
        if room < 2:
            return None
        if after is None:
            return low + min(_STEP, room // 2)
        if before is None:
            return high - min(_STEP, room // 2)
        if before == self._latest:
            return low + max(1, room >> _RUN)
        return high - max(1, room >> _RUN) if after == self._latest else low + room // 2

    def _spread(self) -> Relabelling:
        """Give all values labels with the same distance, which leave half of the numbers free at both ends."""
        values = list(self._sorted)
        kept = [value for value in values if value in self._labels]
        old = np.array([self._labels[value] for value in kept], dtype=np.float64)
        step = _WIDEST // (len(values) + 1)
        self._labels = {value: (i + 1) * step - _WIDEST // 2 for i, value in enumerate(values)}
        self._values = {label: value for value, label in self._labels.items()}
        self._latest = None
        return Relabelling(old, np.array([self._labels[value] for value in kept], dtype=np.float64))


class _SortedValues(Generic[Value]):
    """Values in order, in chunks, so that adding one moves few."""

    def __init__(self) -> None:
        self._chunks: list[list[Value]] = []
        self._firsts: list[Value] = []  # of each chunk

    def __iter__(self) -> Iterator[Value]:
        return (value for chunk in self._chunks for value in chunk)

    def add(self, value: Value) -> tuple[Value | None, Value | None]:
        """Add a value that is not there, and return the one before and the one after it."""
        if not self._chunks:
            self._chunks, self._firsts = [[value]], [value]
            return None, None
        which = max(bisect_right(self._firsts, value) - 1, 0)
        chunk = self._chunks[which]
        insort(chunk, value)
        at = bisect_left(chunk, value)
        self._firsts[which] = chunk[0]
        before = chunk[at - 1] if at else self._chunks[which - 1][-1] if which else None
        beyond = self._firsts[which + 1] if which + 1 < len(self._chunks) else None
        after = chunk[at + 1] if at + 1 < len(chunk) else beyond
        if len(chunk) > 2 * _CHUNK:
            self._chunks[which : which + 1] = [chunk[:_CHUNK], chunk[_CHUNK:]]
            self._firsts[which : which + 1] = [chunk[0], chunk[_CHUNK]]
        return before, after

    def remove(self, value: Value) -> None:
        """Remove a value that is there."""
        which = bisect_right(self._firsts, value) - 1
        chunk = self._chunks[which]
        del chunk[bisect_left(chunk, value)]
        if chunk:
            self._firsts[which] = chunk[0]
        else:
            del self._chunks[which], self._firsts[which]
