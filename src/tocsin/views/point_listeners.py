"""Ranges as points in the plane, of which a message asks for those in a rectangle."""

from __future__ import annotations

import numpy as np

from tocsin.matching import IdArray, Matches
from tocsin.structures.point_index.index import PointIndex
from tocsin.structures.point_index.state import Rectangles
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages


class PointListeners:
    """Listeners in one tree of a point index."""

    def __init__(self) -> None:
        self._index = PointIndex()
        self._root = int(self._index.plant(1)[0])

    def add(self, places: IdArray, lows: Floats, highs: Floats) -> None:
        """Add ranges, both ends included, finite, low <= high; no place is held already."""
        self._index.add(self._root, places, lows, highs)

    def remove(self, places: IdArray) -> None:
        """Remove ranges; places that are not held are passed over."""
        self._index.remove(places)

    def hear(self, messages: Messages) -> Matches:
        """Return, per message, the places of those that hear it, in any order and without repeats."""
        places, offsets = self._index.find(rectangles(messages, self._root))
        return Matches(offsets, places)

    @property
    def nbytes(self) -> int:
        """Return the bytes of all that is held."""
        return self._index.nbytes


def rectangles(messages: Messages, root: int) -> Rectangles:
    """Return what messages ask of a tree."""
    return Rectangles(
        np.full(len(messages), root, dtype=np.int64),
        messages.outer_l,
        messages.inner_l,
        messages.inner_r,
        messages.outer_r,
    )
