"""The numbers of subscriptions in an index, and in the store of one process."""

from __future__ import annotations

import numpy as np

from tocsin.structures.array_types import Int64s


class NumberTable:
    """Pairs of numbers, found by the one in the index.

    >>> numbers = NumberTable()
    >>> numbers.add(np.array([7, 3]), np.array([0, 1]))
    >>> numbers.given.tolist(), numbers.own_of(np.array([3, 4, 7])).tolist(), numbers.take_out(np.array([7])).tolist()
    ([3, 7], [1, -1, 0], [0])
    """

    def __init__(self) -> None:
        self.given: Int64s = np.empty(0, dtype=np.int64)  # ascending
        self.own: Int64s = np.empty(0, dtype=np.int64)

    def add(self, given: Int64s, own: Int64s) -> None:
        """Add pairs."""
        every = np.concatenate([self.given, given])
        order = np.argsort(every, kind="stable")
        self.given, self.own = every[order], np.concatenate([self.own, own])[order]

    def own_of(self, given: Int64s) -> Int64s:
        """Return the store's number of each; -1 if there is none."""
        if not len(self.given):
            return np.full(len(given), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.given, given), len(self.given) - 1)
        found: Int64s = np.where(self.given[at] == given, self.own[at], -1)
        return found

    def take_out(self, given: Int64s) -> Int64s:
        """Remove pairs that are there, and return the store's numbers."""
        is_out = np.isin(self.given, given)
        out: Int64s = self.own[is_out]
        self.given, self.own = self.given[~is_out], self.own[~is_out]
        return out
