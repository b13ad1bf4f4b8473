"""Trees of points in the plane, each point with an id, asked by rectangles in batches."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.growth import bytes_of
from tocsin.structures.point_index._kernels.asking import count, find
from tocsin.structures.point_index._kernels.building import rebuild
from tocsin.structures.point_index._kernels.changing import insert, remove
from tocsin.structures.point_index._kernels.memory import compact, give_roots, new_roots
from tocsin.structures.point_index.state import (
    BLOCK,
    COUNT,
    DEPTH,
    FILL,
    LEAF,
    POINTS,
    TOP_SLOT,
    Rectangles,
    Scratch,
    State,
    new_scratch,
    new_state,
    with_nodes,
    with_places,
    with_slots,
)

Floats: TypeAlias = NDArray[np.float64]
Ids: TypeAlias = NDArray[np.int64]

_MOST: Final = 2**31 - 1  # ids and slots are kept in 32 bits
_MANY: Final = 1 << 12  # slots that are of no account
_KEPT: Final = 1 << 20  # ids that may be found in memory that is used again
_WORTH: Final = 4  # a tree that grows by more than a part of this size is built anew


class PointIndex:
    """Points (x1, x2) with ids, in kd-trees that share their memory; a point costs some 30 bytes.

    Ids are small whole numbers, each at one place at a time: an array as long as the greatest tells where each is.
    Coordinates are finite. A tree's nodes keep tight boxes; its leaves have up to 64 points, next to each other.
    """

    def __init__(self) -> None:
        self.state: State = new_state()
        self._scratch: Scratch = new_scratch(_MANY)
        self._waiting = np.empty(DEPTH, dtype=np.int64)
        self._found = np.empty(1024, dtype=np.int64)  # memory that was never used is dearer than copying

    def __len__(self) -> int:
        return int(self.state.tops[POINTS])

    @property
    def nbytes(self) -> int:
        """Return the bytes of all that is held."""
        return bytes_of(self.state) + bytes_of(self._scratch) + self._found.nbytes

    # changes

    def plant(self, trees: int) -> Ids:
        """Return the roots of so many new trees; a root names its tree for good."""
        self.state = with_nodes(self.state, trees)
        roots = np.empty(trees, dtype=np.int64)
        new_roots(self.state, roots)
        return roots

    def fell(self, roots: Ids) -> None:
        """Give up trees that have no points."""
        give_roots(self.state, roots)

    def size(self, root: int) -> int:
        """Return how many points a tree has."""
        return int(self.state.links[root, COUNT])

    def add(self, root: int, ids: Ids, x1: Floats, x2: Floats) -> None:
        """Add points to one tree; no id is held already."""
        if not len(ids):
            return
        self._make_room(ids)
        if len(ids) >= LEAF and len(ids) * _WORTH > self.size(root):
            self._add_at_once(root, ids, x1, x2)
        else:
            self._add_one_by_one(np.full(len(ids), root, dtype=np.int64), ids, x1, x2)

    def add_scattered(self, roots: Ids, ids: Ids, x1: Floats, x2: Floats) -> None:
        """Add points to trees, each to that of its root; no id is held already."""
        if len(ids):
            self._make_room(ids)
            self._add_one_by_one(roots, ids, x1, x2)

    def remove(self, ids: Ids) -> None:
        """Remove points; ids that are not held are passed over."""
        ids, done = _writable(ids, np.int64), 0
        while done < len(ids):
            done, node = remove(self.state, ids, done)
            if node >= 0:
                self._rebuild(node)
            elif done < len(ids):
                self.state = with_slots(self.state, LEAF)
        # Blocks that are free serve only leaves of their size; those that are half empty, none.
        if self.state.tops[TOP_SLOT] > 3 * len(self) + _MANY:
            self._compact()

    def _make_room(self, ids: Ids) -> None:
        greatest = int(ids.max())
        if greatest >= _MOST or int(self.state.tops[TOP_SLOT]) + 2 * len(ids) > _MOST:
            raise OverflowError(
                f"the point index numbers points and their places up to {_MOST:,}; divide them among several"
            )
        self.state = with_places(self.state, greatest + 1)

    def _add_at_once(self, root: int, ids: Ids, x1: Floats, x2: Floats) -> None:
        """Build a tree anew with further points."""
        more = len(ids)
        scratch = new_scratch(self.size(root) + more)
        scratch.x1[:more], scratch.x2[:more], scratch.ids[:more] = x1, x2, ids
        self._make_room_for_leaves(len(scratch.ids))
        rebuild(self.state, root, scratch, more)
        self.state.tops[POINTS] += more

    def _add_one_by_one(self, roots: Ids, ids: Ids, x1: Floats, x2: Floats) -> None:
        roots, ids = _writable(roots, np.int64), _writable(ids, np.int64)
        x1, x2, done = _writable(x1, np.float64), _writable(x2, np.float64), 0
        while done < len(ids):
            done, node = insert(self.state, roots, ids, x1, x2, done)
            if node >= 0:
                self._rebuild(node)
            elif done < len(ids):
                self.state = with_slots(self.state, LEAF)

    def _rebuild(self, node: int) -> None:
        points = self.size(node)
        self._make_room_for_leaves(points)
        is_usual = points <= len(self._scratch.ids)
        rebuild(self.state, node, self._scratch if is_usual else new_scratch(points), 0)

    def _make_room_for_leaves(self, points: int) -> None:
        leaves = points // FILL + 1
        self.state = with_nodes(self.state, 2 * leaves)
        self.state = with_slots(self.state, leaves * FILL)

    def _compact(self) -> None:
        """Move all points to new slots, without those that lie idle."""
        like = new_state()._replace(x1=np.empty(0), x2=np.empty(0), ids=np.empty(0, dtype=np.int32))
        slots = with_slots(like, min(int(self.state.tops[TOP_SLOT]), 2 * len(self) + LEAF))
        compact(self.state, slots.x1, slots.x2, slots.ids)
        self.state = self.state._replace(x1=slots.x1, x2=slots.x2, ids=slots.ids)

    # questions

    def point(self, id_: int) -> tuple[float, float]:
        """Return where the point of an id is that is held."""
        leaf = self.state.links[self.state.where[id_]]
        slot = leaf[BLOCK] + np.flatnonzero(self.state.ids[leaf[BLOCK] : leaf[BLOCK] + leaf[COUNT]] == id_)[0]
        return float(self.state.x1[slot]), float(self.state.x2[slot])

    def find(self, asked: Rectangles) -> tuple[Ids, Ids]:
        """Return the ids in each rectangle, in any order, and where those of each begin."""
        asked, questions = _pinned(asked), len(asked.roots)
        offsets = np.zeros(questions + 1, dtype=np.int64)
        found = self._found
        done, needed = find(self.state, asked, 0, self._waiting, offsets, found)
        while done < questions:
            more = np.empty(max(2 * len(found), needed), dtype=np.int64)
            more[: offsets[done]] = found[: offsets[done]]
            found = more
            done, needed = find(self.state, asked, done, self._waiting, offsets, found)
        if len(found) > _KEPT:
            return found[: offsets[-1]], offsets
        self._found = found
        return found[: offsets[-1]].copy(), offsets

    def count(self, asked: Rectangles) -> Ids:
        """Return how many points each rectangle holds."""
        return self._count(asked, _MOST)

    def any(self, asked: Rectangles) -> NDArray[np.bool_]:
        """Tell of each rectangle whether it holds any point."""
        return self._count(asked, 1) > 0

    def _count(self, asked: Rectangles, most: int) -> Ids:
        counts = np.empty(len(asked.roots), dtype=np.int64)
        count(self.state, _pinned(asked), most, self._waiting, counts)
        return counts


def _writable(array: NDArray[np.generic], dtype: type[np.generic]) -> NDArray[np.generic]:
    # Kernels are compiled once more for an array that they may not write to, or that is not contiguous.
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.writeable:
        return array
    return np.require(array, dtype=dtype, requirements=["C", "W"])


def _pinned(asked: Rectangles) -> Rectangles:
    roots, *sides = asked
    return Rectangles(_writable(roots, np.int64), *(_writable(side, np.float64) for side in sides))
