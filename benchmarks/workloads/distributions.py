"""Numbers drawn with weights: one by one, and in rows that hold none twice."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

_ROUNDS: Final = 6  # of redrawing repeated numbers


class Choice:
    """Numbers below `count`; each is as likely as its weight says, or as any other without weights."""

    def __init__(self, count: int, weights: NDArray[np.float64] | None = None) -> None:
        if weights is not None and (len(weights) != count or not (weights >= 0).all() or not weights.any()):
            raise ValueError(f"{count} numbers need as many weights, none negative and not all zero")
        self.count = count
        self._weights = weights
        self._aliases = None if weights is None else _aliases(weights)
        self.possible = count if weights is None else int(np.count_nonzero(weights))

    def draw(self, random: Generator, shape: int | tuple[int, ...]) -> NDArray[np.int32]:
        """Return numbers, each drawn by itself."""
        drawn = random.integers(0, self.count, shape, dtype=np.int32)
        if self._aliases is None:
            return drawn
        share, other = self._aliases
        return np.where(random.random(shape) < share[drawn], drawn, other[drawn])

    def distinct(self, random: Generator, rows: int, width: int) -> NDArray[np.int32]:
        """Return rows of `width` different numbers, each number drawn by its weight among those still left.

        What a row holds already is drawn again, cell by cell, which is the same as drawing from what is left. A row
        that holds much of the weight would take long so: its cells are drawn one after another, past what it holds.
        """
        if width > self.possible:
            raise ValueError(f"there are no {width} different numbers among {self.possible}")
        drawn = self.draw(random, (rows, width))
        waiting = np.arange(rows)
        for _ in range(_ROUNDS):
            is_again = _repeated(drawn[waiting])
            unsettled = is_again.any(axis=1)
            waiting, is_again = waiting[unsettled], is_again[unsettled]
            if not len(waiting):
                return drawn
            cells = drawn[waiting]
            cells[is_again] = self.draw(random, int(np.count_nonzero(is_again)))
            drawn[waiting] = cells
        drawn[waiting] = self._drawn_past(random, drawn[waiting])
        waiting = waiting[_repeated(drawn[waiting]).any(axis=1)]
        for row in waiting.tolist():  # the remaining weights are below a float's precision
            drawn[row] = self._ranked(random, drawn[row])
        return drawn

    def _drawn_past(self, random: Generator, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return rows in which a number that occurs again is redrawn from the numbers that do not occur yet."""
        weights = np.ones(self.count) if self._weights is None else self._weights
        sums = np.cumsum(weights)
        for place in range(1, rows.shape[1]):
            again = np.flatnonzero((rows[:, :place] == rows[:, place : place + 1]).any(axis=1))
            held = np.sort(rows[again, :place], axis=1)
            weight = weights[held]
            point = random.random(len(again)) * (sums[-1] - weight.sum(axis=1))
            for number, width in zip(held.T, weight.T, strict=True):
                point += np.where(point >= sums[number] - width, width, 0.0)
            found = np.searchsorted(sums, point, side="right")
            rows[again, place] = np.minimum(found, self.count - 1)
        return rows

    def _ranked(self, random: Generator, row: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return a row with its repeated numbers replaced by those with the smallest random keys.

        A key is exponential with the number's weight as its rate, so that the keys come in the order in which
        the numbers would be drawn.
        """
        weights = np.ones(self.count) if self._weights is None else self._weights
        keys = np.full(self.count, np.inf)
        is_free = weights > 0
        is_free[row] = False
        keys[is_free] = random.standard_exponential(int(np.count_nonzero(is_free))) / weights[is_free]
        is_again = _repeated(row[None, :])[0]
        filled = row.copy()
        filled[is_again] = np.argsort(keys)[: np.count_nonzero(is_again)]
        return filled


def zipf(count: int, exponent: float) -> Choice:
    """Return numbers from 0 on, number k as likely as `(k + 1) ** -exponent`; all alike if the exponent is 0."""
    if exponent == 0:
        return Choice(count)
    return Choice(count, np.arange(1, count + 1, dtype=np.float64) ** -exponent)


def _aliases(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return, of as many equal cells as there are numbers, the share that is the cell's own, and whose the rest is.

    Drawing a cell, and then one of the two, draws by weight in two steps however many numbers there are.
    """
    share = weights * (len(weights) / weights.sum())
    other = np.arange(len(weights), dtype=np.int32)
    poor = np.flatnonzero(share < 1).tolist()
    rich = np.flatnonzero(share >= 1).tolist()
    left = share.tolist()
    while poor and rich:
        taker, giver = poor.pop(), rich[-1]
        other[taker] = giver
        left[giver] -= 1 - left[taker]
        if left[giver] < 1:
            poor.append(rich.pop())
    own = np.array(left)
    own[poor + rich] = 1.0  # left over by rounding
    # A number without weight that rounding left over must not be drawn.
    own[weights == 0] = 0.0
    other[(weights == 0) & (other == np.arange(len(weights)))] = int(np.argmax(weights))
    return own, other


def _repeated(rows: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return, for each cell, whether a cell before it in its row has the same number."""
    found = np.zeros(rows.shape, dtype=np.bool_)
    if rows.shape[1] < 2:
        return found
    ordered = np.sort(rows, axis=1)
    suspects = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(suspects):
        width = rows.shape[1]
        keys: NDArray[Any] = rows[suspects].astype(np.int64) * width + np.arange(width)
        keys.sort(axis=1)
        number, place = np.divmod(keys, width)
        row, later = np.nonzero(number[:, 1:] == number[:, :-1])
        found[suspects[row], place[row, later + 1]] = True
    return found
