"""The index that conjunctions are hashed in, and while all are rehashed under another scheme, the one they move to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh._kernels.placement import place, withdraw
from tocsin.matching.amkh.state import Index, IndexTop, State, StoredColumn
from tocsin.matching.conjunction_store.state import Expressions


class IndexPair:
    """One index, or two while conjunctions move; new conjunctions go to the one that the others move to.

    The HOME of a conjunction says which of the two it is in: `home` is that of conjunctions in `current`, and the others
    have `1 - home`.
    """

    def __init__(self, index: Index) -> None:
        self.current = index
        self.following: Index | None = None
        self.home = 0

    @property
    def indexes(self) -> list[Index]:
        """Return the index, or both."""
        return [self.current] if self.following is None else [self.current, self.following]

    @property
    def new_home(self) -> int:
        """Return the HOME of conjunctions that are placed from now on."""
        return self.home if self.following is None else 1 - self.home

    def change(self, change: Callable[[Index], Index]) -> None:
        """Replace each index by a changed one."""
        self.current = change(self.current)
        if self.following is not None:
            self.following = change(self.following)

    def grow(self, attributes: int) -> None:
        """Make room for so many attributes."""
        self.current = arrays.with_index_fields(self.current, attributes)
        if self.following is not None:
            self.following = arrays.with_index_fields(self.following, attributes)

    def place(self, state: State, expressions: Expressions) -> None:
        """Hash conjunctions into the index that new ones go to."""
        widest = int(np.diff(expressions.offsets).max(initial=0))
        done, count = 0, len(expressions.numbers)
        while done < count:
            index = arrays.with_points(self.indexes[-1], count - done, widest)
            if self.following is None:
                self.current = index
            else:
                self.following = index
            done = place(state, index, expressions, done)

    def withdraw(self, state: State, expressions: Expressions) -> None:
        """Take conjunctions out of the index that each is in."""
        numbers = expressions.numbers
        homes = state.store.rows[numbers, StoredColumn.HOME]
        for index, home in zip(self.indexes, (self.home, 1 - self.home), strict=False):
            index.tops[IndexTop.RESUME] = 0
            withdraw(state, index, numbers[homes == home])

    def finish_move(self) -> None:
        """Replace the index by the one that all conjunctions have moved to."""
        if self.following is not None:
            self.current, self.following, self.home = self.following, None, 1 - self.home
