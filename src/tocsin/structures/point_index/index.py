"""Trees of points in the plane, each point with an id; batches of rectangles find or count them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.array_types import Bools, Float64s, Int64s
from tocsin.structures.growth import bytes_of
from tocsin.structures.point_index._kernels.allocation import compact, give_roots, new_roots
from tocsin.structures.point_index._kernels.queries import count, find
from tocsin.structures.point_index._kernels.rebuilding import rebuild
from tocsin.structures.point_index._kernels.updates import insert, remove
from tocsin.structures.point_index.state import (
    DEPTH,
    FILL,
    LEAF,
    Link,
    Rectangles,
    Scratch,
    State,
    Top,
    new_scratch,
    new_state,
    with_nodes,
    with_places,
    with_slots,
)

_MOST: Final = 2**31 - 1  # ids and slots are kept in 32 bits
_MANY: Final = 1 << 12  # idle slots that are not worth compacting
_KEPT: Final = 1 << 20  # ids up to which the memory of results is reused
_WORTH: Final = 4  # a tree that grows by more than this part of itself is rebuilt


class PointIndex:
    """Points (x1, x2) with ids, in kd-trees that share their memory; a point costs some 30 bytes.

    Int64s are small integers, each at one point at a time: an array as long as the greatest id finds their leaves.
    Coordinates are finite. A tree's nodes keep tight boxes; its leaves have up to 64 neighbouring points.
    """

    def __init__(self) -> None:
        self.state: State = new_state()
        self._scratch: Scratch = new_scratch(_MANY)
        self._stack = np.empty(DEPTH, dtype=np.int64)
        self._found = np.empty(1024, dtype=np.int64)  # fresh memory costs more than copying

    def __len__(self) -> int:
        return int(self.state.tops[Top.POINTS])

    @property
    def nbytes(self) -> int:
        """Return the bytes of all arrays."""
        return bytes_of(self.state) + bytes_of(self._scratch) + self._found.nbytes

    # changes

    def plant(self, trees: int) -> Int64s:
        """Return the roots of new trees; a root names its tree until `fell`."""
        self.state = with_nodes(self.state, trees)
        roots = np.empty(trees, dtype=np.int64)
        new_roots(self.state, roots)
        return roots

    def fell(self, roots: Int64s) -> None:
        """Give back trees without points."""
        give_roots(self.state, roots)

    def size(self, root: int) -> int:
        """Return the number of points in a tree."""
        return int(self.state.links[root, Link.COUNT])

    def add(self, root: int, ids: Int64s, x1: Float64s, x2: Float64s) -> None:
        """Add points to one tree; no id is in the index."""
        if not len(ids):
            return
        self._make_room(ids)
        if len(ids) >= LEAF and len(ids) * _WORTH > self.size(root):
            self._add_at_once(root, ids, x1, x2)
        else:
            self._add_one_by_one(np.full(len(ids), root, dtype=np.int64), ids, x1, x2)

    def add_scattered(self, roots: Int64s, ids: Int64s, x1: Float64s, x2: Float64s) -> None:
        """Add points to several trees, each to that of its root; no id is in the index."""
        if len(ids):
            self._make_room(ids)
            self._add_one_by_one(roots, ids, x1, x2)

    def remove(self, ids: Int64s) -> None:
        """Remove points; unknown ids are skipped."""
        ids, done = _writable(ids, np.int64), 0
        while done < len(ids):
            done, node = remove(self.state, ids, done)
            if node >= 0:
                self._rebuild(node)
            elif done < len(ids):
                self.state = with_slots(self.state, LEAF)
        # A free block serves only leaves of its size, and the slots of half-empty blocks serve none.
        if self.state.tops[Top.SLOT] > 3 * len(self) + _MANY:
            self._compact()

    def _make_room(self, ids: Int64s) -> None:
        greatest = int(ids.max())
        if greatest >= _MOST or int(self.state.tops[Top.SLOT]) + 2 * len(ids) > _MOST:
            raise OverflowError(
                f"the point index numbers points and their slots up to {_MOST:,}; divide them among several"
            )
        self.state = with_places(self.state, greatest + 1)

    def _add_at_once(self, root: int, ids: Int64s, x1: Float64s, x2: Float64s) -> None:
        """Rebuild a tree with further points."""
        more = len(ids)
        scratch = new_scratch(self.size(root) + more)
        scratch.x1[:more], scratch.x2[:more], scratch.ids[:more] = x1, x2, ids
        self._make_room_for_leaves(len(scratch.ids))
        rebuild(self.state, root, scratch, more)
        self.state.tops[Top.POINTS] += more

    def _add_one_by_one(self, roots: Int64s, ids: Int64s, x1: Float64s, x2: Float64s) -> None:
        """Insert points into their trees, and rebuild each node that overflows or becomes uneven."""
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
        """Move all points to new slots, without the idle ones."""
        like = new_state()._replace(x1=np.empty(0), x2=np.empty(0), ids=np.empty(0, dtype=np.int32))
        slots = with_slots(like, min(int(self.state.tops[Top.SLOT]), 2 * len(self) + LEAF))
        compact(self.state, Scratch(slots.x1, slots.x2, slots.ids, self._scratch.stack))
        self.state = self.state._replace(x1=slots.x1, x2=slots.x2, ids=slots.ids)

    # queries

    def point(self, id_: int) -> tuple[float, float]:
        """Return the coordinates of an id that is in the index."""
        leaf = self.state.links[self.state.where[id_]]
        slot = (
            leaf[Link.BLOCK]
            + np.flatnonzero(self.state.ids[leaf[Link.BLOCK] : leaf[Link.BLOCK] + leaf[Link.COUNT]] == id_)[0]
        )
        return float(self.state.x1[slot]), float(self.state.x2[slot])

    def find(self, rectangles: Rectangles) -> tuple[Int64s, Int64s]:
        """Return the ids in all rectangles, in any order within one, and the offset of each rectangle's ids."""
        queries = len(rectangles.roots)
        offsets = np.zeros(queries + 1, dtype=np.int64)
        found = self._found
        done, needed = find(self.state, rectangles, 0, self._stack, offsets, found)
        while done < queries:
            more = np.empty(max(2 * len(found), needed), dtype=np.int64)
            more[: offsets[done]] = found[: offsets[done]]
            found = more
            done, needed = find(self.state, rectangles, done, self._stack, offsets, found)
        if len(found) > _KEPT:
            return found[: offsets[-1]], offsets
        self._found = found
        return found[: offsets[-1]].copy(), offsets

    def count(self, rectangles: Rectangles) -> Int64s:
        """Return the number of points in each rectangle."""
        return self._count(rectangles, _MOST)

    def any(self, rectangles: Rectangles) -> Bools:
        """Tell which rectangles contain a point."""
        return self._count(rectangles, 1) > 0

    def _count(self, rectangles: Rectangles, most: int) -> Int64s:
        counts = np.empty(len(rectangles.roots), dtype=np.int64)
        count(self.state, rectangles, most, self._stack, counts)
        return counts


def _writable(array: NDArray[np.generic], dtype: type[np.generic]) -> NDArray[np.generic]:
    # A read-only or non-contiguous array would compile a second version of a kernel.
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.writeable:
        return array
    return np.require(array, dtype=dtype, requirements=["C", "W"])
