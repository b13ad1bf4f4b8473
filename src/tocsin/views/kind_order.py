"""The order of values of several kinds, for `min` and `max`: numbers first, then strings, timestamps and booleans."""

from __future__ import annotations

from typing import Final, TypeAlias

from tocsin.model.values import Kind, Value, kind_of
from tocsin.views.numbers import Number

RANKS: Final = {Kind.NUMBER: 0, Kind.STRING: 1, Kind.TIMESTAMP: 2, Kind.BOOLEAN: 3}
"""The kinds in the order in which they are preferred: `min` and `max` are of the first kind that any row has."""

OtherKey: TypeAlias = tuple[int, Value]
"""A value that is no number, after its rank; keys are in the order in which `min`, or from the end `max`, prefers them."""


def other_key(value: Value, sign: int) -> OtherKey:
    """Return the key of a value that is no number; `sign` is 1 for `min`, -1 for `max`.

    >>> sorted([other_key("b", 1), other_key(True, 1), other_key("a", 1)])[0]
    (1, 'a')
    >>> sorted([other_key("b", -1), other_key(True, -1), other_key("a", -1)])[-1]
    (-1, 'b')
    """
    return sign * RANKS[kind_of(value)], value


class OtherValue:
    """A value that is no number, ordered after all finite numbers and before infinity, which means no value.

    Of two, the one whose kind is preferred comes first; of one kind, the lesser, or the greater if `sign` is -1.
    """

    __slots__ = ("_rank", "_sign", "value")

    def __init__(self, value: Value, sign: int) -> None:
        self.value = value
        self._sign = sign
        self._rank = RANKS[kind_of(value)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OtherValue) and self._rank == other._rank and self.value == other.value

    def __hash__(self) -> int:
        return hash((self._rank, self.value))

    def __lt__(self, other: OtherValue | Number) -> bool:
        if not isinstance(other, OtherValue):
            return other == float("inf")
        if self._rank != other._rank:
            return self._rank < other._rank
        one, two = (self.value, other.value) if self._sign > 0 else (other.value, self.value)
        return one < two  # type: ignore[operator]

    def __gt__(self, other: OtherValue | Number) -> bool:
        return other < self if isinstance(other, OtherValue) else other != float("inf")

    def __le__(self, other: OtherValue | Number) -> bool:
        return not self > other

    def __ge__(self, other: OtherValue | Number) -> bool:
        return not self < other
