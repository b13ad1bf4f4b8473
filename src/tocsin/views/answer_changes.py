"""Changes of answers as columns, and when two answers are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace
from numpy.typing import NDArray

from tocsin.matching import IdArray
from tocsin.model.subscription import Answer, AnswerItem
from tocsin.model.values import kind_of
from tocsin.structures.array_types import Bools, Int64s

SetDifference: TypeAlias = tuple[tuple[AnswerItem, ...], tuple[AnswerItem, ...]]
"""The values or rows that a set lost, and those that it gained."""

_NO_DIFFERENCE: Final[SetDifference] = ((), ())


class AnswerChanges(Struct, frozen=True):
    """Answers that changed, as columns of equal length, in the order of the rows; a subscription changes once per row.

    `old` and `new` are floats with NaN for null, or objects. `removed` and `added` are the difference between two sets of
    values or rows: tuples of these, or, as aggregates return them, codes with -1 for none. Both are None if no answer is
    a set.
    """

    rows: IdArray  # [changes] the row, by its index, that changed the answer
    numbers: IdArray  # [changes] the subscription's number
    old: NDArray[Any]
    new: NDArray[Any]
    removed: NDArray[Any] | None = None
    added: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def join(parts: Sequence[AnswerChanges]) -> AnswerChanges:
        """Return the changes of all parts, one part after another.

        Columns become objects where parts differ, even if a part is empty: the type depends on the views, not on the rows.
        """
        filled = [part for part in parts if len(part)]
        if len({(part.new.dtype, part.removed is None) for part in parts}) > 1:
            filled = [part.as_objects() for part in filled]
        if len(filled) < 2:
            return filled[0] if filled else parts[0] if parts else NO_CHANGES

        def joined(name: str) -> Any:
            columns = [getattr(part, name) for part in filled]
            return None if columns[0] is None else np.concatenate(columns)

        kind = type(filled[0])
        return kind(**{name: joined(name) for name in kind.__struct_fields__})

    def take(self, positions: Bools | Int64s) -> AnswerChanges:
        """Return some of the changes, given by a mask or by their positions."""
        taken: dict[str, Any] = {
            name: None if column is None else column[positions] for name, column in asdict(self).items()
        }
        return type(self)(**taken)

    def sort(self) -> AnswerChanges:
        """Return the changes by row, and within a row by number."""
        return self if len(self) < 2 else self.take(np.lexsort((self.numbers, self.rows)))

    def old_answer(self, position: int) -> Any:
        """Return the answer before a change."""
        return number_answer(self.old.item(position))

    def new_answer(self, position: int) -> Any:
        """Return the answer after a change."""
        return number_answer(self.new.item(position))

    def differences(self, position: int) -> SetDifference:
        """Return the values or rows that a set lost and gained; both are empty if the answer is no set."""
        if self.removed is None or self.added is None:
            return _NO_DIFFERENCE
        return self.removed[position], self.added[position]

    def with_old(self, old: Mapping[int, Answer]) -> AnswerChanges:
        """Return the same changes with other answers before some of them, given by position."""
        if not old:
            return self
        changed = replace(
            self,
            old=self.old.copy(),
            removed=None if self.removed is None else self.removed.copy(),
            added=None if self.added is None else self.added.copy(),
        )
        for position, answer in old.items():
            changed.old[position] = np.nan if answer is None and self.old.dtype != object else answer
            if changed.removed is not None and changed.added is not None:
                changed.removed[position], changed.added[position] = differences(
                    answer, self.new_answer(position)
                )
        return changed

    def as_objects(self) -> AnswerChanges:
        """Return the same changes with Python answers instead of floats."""
        none = self.removed is None
        return replace(
            self,
            old=objects(map(self.old_answer, range(len(self)))),
            new=objects(map(self.new_answer, range(len(self)))),
            removed=objects([()] * len(self)) if none else self.removed,
            added=objects([()] * len(self)) if none else self.added,
        )


NO_CHANGES: Final = AnswerChanges(
    np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), np.empty(0)
)


class ChangeLog:
    """Collects changes one by one, for aggregates that are kept row by row."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, int, Answer, Answer, SetDifference]] = []

    def add(
        self, row: int, number: int, old: Answer, new: Answer, difference: SetDifference = _NO_DIFFERENCE
    ) -> None:
        """Add a change."""
        self._lines.append((row, number, old, new, difference))

    def changes(self) -> AnswerChanges:
        """Return all changes as columns, by row and within a row by number."""
        if not self._lines:
            return NO_CHANGES.as_objects()
        rows, numbers, old, new, both = zip(*sorted(self._lines, key=itemgetter(0, 1)), strict=True)
        removed, added = zip(*both, strict=True)
        return AnswerChanges(
            np.array(rows, dtype=np.int64),
            np.array(numbers, dtype=np.int64),
            *map(objects, (old, new, removed, added)),
        )


def objects(items: Iterable[Any]) -> NDArray[Any]:
    """Return an array of Python objects; a tuple is one of them."""
    every = list(items)
    return np.fromiter(every, dtype=object, count=len(every))


def number_answer(number: Any) -> Any:
    """Return a number as an answer: None for NaN, and an integer for a whole float that is exact; other answers as they are."""
    if not isinstance(number, float):
        return number
    if number != number:  # noqa: PLR0124 - NaN alone differs from itself
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else float(number)


def same_answer(one: Answer, other: Answer) -> bool:
    """Tell whether two answers are equal, whatever the order of their values or rows; `true` is not 1.

    >>> same_answer((1, "a"), ("a", 1.0)), same_answer((1,), (True,))
    (True, False)
    """
    if isinstance(one, tuple) and isinstance(other, tuple):
        return Counter(map(_identity, one)) == Counter(map(_identity, other))
    return not isinstance(one, tuple) and not isinstance(other, tuple) and _identity(one) == _identity(other)


def differences(old: Answer, new: Answer) -> SetDifference:
    """Return the values or rows that are only in the old answer, and those only in the new; none if these are no sets.

    >>> differences((1, 2, 2), (2, 3))
    ((1, 2), (3,))
    """
    if not isinstance(old, tuple) or not isinstance(new, tuple):
        return _NO_DIFFERENCE
    return _items_only_in(old, new), _items_only_in(new, old)


def _items_only_in(some: tuple[AnswerItem, ...], others: tuple[AnswerItem, ...]) -> tuple[AnswerItem, ...]:
    """Return the items of `some` that `others` lack, in their order; of equal items, the last ones."""
    left = Counter(map(_identity, others))
    left.subtract(map(_identity, some))  # below 0 by as many as the others lack
    lacking = []
    for item in reversed(some):
        if left[_identity(item)] < 0:
            left[_identity(item)] += 1
            lacking.append(item)
    return tuple(reversed(lacking))


def _identity(item: AnswerItem | None) -> Hashable:
    """Return a hashable key of an item that differs between `true` and 1."""
    if isinstance(item, Mapping):
        return frozenset((name, _identity(value)) for name, value in item.items())
    return None if item is None else (kind_of(item), item)
