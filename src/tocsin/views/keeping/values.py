"""The distinct values, each with the number of rows that have it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tocsin.language.semantics import value_of
from tocsin.model.values import Value, kind_of
from tocsin.views.answer_changes import ChangeLog
from tocsin.views.changes import Row
from tocsin.views.compiled import CompiledRowView
from tocsin.views.keeping.keeper import Keeper, Place, parted

_Kept: TypeAlias = tuple[bool, Value]
"""A value, and whether it is a boolean: to Python `True` is 1, while other kinds are never equal."""


class Distinct(Keeper[_Kept]):
    """The different values, in order: by kind, and within a kind by value."""

    def __init__(self, plan: CompiledRowView) -> None:
        super().__init__(plan)
        self._counts: dict[int, dict[_Kept, int]] = {}
        self._old: dict[int, dict[_Kept, None]] = {}  # of those that were touched

    def read(self, row: Row) -> _Kept | None:
        """Return the value."""
        assert self.plan.y is not None  # noqa: S101 - the language has no other
        value = value_of(self.plan.y, row)
        return None if value is None else (type(value) is bool, value)

    def begin(self, number: int) -> None:
        """Let a subscription begin, with no row yet."""
        self._counts[number] = {}

    def end(self, number: int) -> None:
        """Let go of a subscription's values."""
        del self._counts[number]
        self._old.pop(number, None)

    def follow(
        self,
        place: Place,  # noqa: ARG002 - it does not matter which row it is
        old: _Kept | None,
        new: _Kept | None,
        before: Sequence[int],
        after: Sequence[int],
    ) -> None:
        """Count a row's value down, and its new one up."""
        gone, come = parted(old == new, before, after)
        if old is not None:
            self._add(gone, old, -1)
        if new is not None:
            self._add(come, new, 1)

    def _add(self, numbers: Iterable[int], value: _Kept, step: int) -> None:
        for number in numbers:
            counts = self._counts[number]
            now = counts.get(value, 0) + step
            if not now or now == step:  # the last of its kind, or the first
                self._old.setdefault(number, dict.fromkeys(counts))
            if now:
                counts[value] = now
            else:
                del counts[value]

    def settle(self, row: int, log: ChangeLog) -> None:
        """Log the sets of values that changed."""
        for number, before in sorted(self._old.items()):
            now = self._counts[number]
            removed = _values(value for value in before if value not in now)
            added = _values(value for value in now if value not in before)
            if removed or added:
                log.add(row, number, _values(before), _values(now), (removed, added))
        self._old.clear()

    def answer(self, number: int) -> tuple[Value, ...]:
        """Return the values."""
        return _values(self._counts[number])

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the counts, with a pair for each value of each subscription."""
        each = sum(sys.getsizeof(one) + len(one) * sys.getsizeof((0, 0)) for one in self._counts.values())
        return sys.getsizeof(self._counts) + each


def _values(kept: Iterable[_Kept]) -> tuple[Value, ...]:
    return tuple(sorted((value for _, value in kept), key=lambda value: (kind_of(value), value)))
