"""Places for subscriptions, close together whatever their numbers are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tocsin.matching import IdArray
from tocsin.structures.growth import roomier


class Places:
    """Places from 0 by the numbers of subscriptions; one is given again once its subscription has gone.

    What a family keeps by place is then as large as its subscriptions are many, not as their numbers are high.

    >>> places = Places()
    >>> places.take(np.array([900, 7])).tolist(), places.let_go([900, 5]).tolist(), places.take(np.array([3])).tolist()
    ([0, 1], [0], [0])
    >>> places.numbers(np.array([1, 0])).tolist(), places.find(3), len(places), 900 in places
    ([7, 3], 0, 2, False)
    """

    def __init__(self) -> None:
        self._place_of: dict[int, int] = {}
        self._numbers: IdArray = np.zeros(0, dtype=np.int64)  # [place]
        self._free: list[int] = []
        self._top = 0  # places that were ever given
        self._alike = True  # whether every place is its subscription's number

    def __len__(self) -> int:
        return len(self._place_of)

    def __contains__(self, number: int) -> bool:
        return number in self._place_of

    def find(self, number: int) -> int:
        """Return the place of a subscription that has one."""
        return self._place_of[number]

    def numbers(self, places: IdArray) -> IdArray:
        """Return the numbers of the subscriptions at these places."""
        return places if self._alike else self._numbers[places]

    def take(self, numbers: IdArray) -> IdArray:
        """Give each of these subscriptions a place."""
        again = min(len(self._free), len(numbers))
        fresh = len(numbers) - again
        used = [self._free.pop() for _ in range(again)]
        places = np.concatenate(
            [np.array(used, dtype=np.int64), np.arange(self._top, self._top + fresh, dtype=np.int64)]
        )
        self._top += fresh
        if self._top > len(self._numbers):
            longer = np.zeros(roomier(len(self._numbers), self._top), dtype=np.int64)
            longer[: len(self._numbers)] = self._numbers
            self._numbers = longer
        self._numbers[places] = numbers
        self._alike = self._alike and bool((places == numbers).all())
        self._place_of.update(zip(numbers.tolist(), places.tolist(), strict=True))
        return places

    def let_go(self, numbers: Iterable[int]) -> IdArray:
        """Take the places of these subscriptions back, and return them; numbers that have none are passed over."""
        found = [place for number in numbers if (place := self._place_of.pop(number, None)) is not None]
        self._free += found
        return np.array(found, dtype=np.int64)
