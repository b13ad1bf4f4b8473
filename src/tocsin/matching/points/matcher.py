"""The matcher `points`: conjunctions that compare up to two constants are points, all others are in `dynamic`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final, TypeVar

import msgspec
import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching._kernels.single_event import NO_ROOM
from tocsin.matching.base import IndexedMatcher
from tocsin.matching.batches import Clauses, IdArray
from tocsin.matching.conjunction_store._kernels.numbers import add_numbers, unlink
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter, numbers_in_use
from tocsin.matching.encoding.codes import FIELDS, Keys, key_of_number
from tocsin.matching.encoding.conjunctions import EncodedConjunctions
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.le_subscribe.dynamic import Dynamic
from tocsin.matching.matcher import MatcherStats
from tocsin.matching.points import state as arrays
from tocsin.matching.points._kernels.events import PointsState, PointsStateAddress, match_event
from tocsin.matching.points._kernels.rectangles import join, rectangles_of
from tocsin.matching.points._kernels.trees import leave, tree_all
from tocsin.matching.points.shapes import Shape, alike, numbers_of, shapes_of
from tocsin.matching.points.state import ShapeColumn, State, StoredColumn, Total, Values
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.model.values import Value
from tocsin.structures import hash_index
from tocsin.structures.addresses import Addressed
from tocsin.structures.array_types import Int64s
from tocsin.structures.point_index.index import PointIndex
from tocsin.structures.point_index.state import DEPTH, Rectangles
from tocsin.structures.point_index.state import State as PointState

Part = TypeVar("Part")

_NONE: Final = np.empty(0, dtype=np.int64)
_INNER_PARTS: Final = "inner."
_ROOM: Final = 1 << 16  # rectangles that are searched at a time


@register("points")
class Points(IndexedMatcher):
    """Keeps conjunctions as points: their constants are coordinates, and an event matches all points in a rectangle.

    A conjunction is a point if it has up to two equalities and compares up to two numbers with attributes: `a > 3`, `a > 3
    and b < 5`, `a between 3 and 5`, and `a < 3 and b >= 3 and c <= 5 and d > 5`, which a reformulated view is. Each
    shape has a tree for each combination of values of its equalities. All other conjunctions are in `dynamic`.
    """

    saved_states: ClassVar[tuple[str, ...]] = ("_state", "_points")

    def __init__(self, *, vocabulary: Vocabulary | None = None) -> None:
        super().__init__(vocabulary)
        self._state: State = arrays.new_state()
        self._index = PointIndex()
        self._inner = Dynamic(vocabulary=self.vocabulary)
        self._inner._single_events = self._single_events  # noqa: SLF001 - one of us: an event is encoded once for both
        self._others: IdArray = _NONE  # what the inner matcher has found for the event at hand
        self._addressed = Addressed[PointsState](PointsStateAddress)
        self._shapes: dict[Shape, int] = {}
        self._inner_numbers: dict[int, int] = {}  # of the last match, by our number the inner matcher's

    @property
    def _points(self) -> PointState:
        return self._index.state

    @_points.setter
    def _points(self, state: PointState) -> None:
        self._index.state = state

    # adding and removing

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        with self._lock:
            groups, others = self._sorted(batch)
            numbers = np.empty(len(batch.ids), dtype=np.int64)
            self._state = arrays.with_room(self._state, len(numbers))
            add_numbers(self._store, batch.ids, numbers)
            try:
                if len(others):
                    self._inner.add_encoded(_part(batch, others, numbers[others]))
            except BaseException:
                unlink(self._store, numbers)
                self._leave(numbers)
                raise
            for shape, places in groups:
                self._enter(shape, numbers[places], *_tables(batch, places, len(shape.tags)))

    def _take_out(self, numbers: Keys) -> None:
        is_point = self._store.rows[numbers, StoredColumn.SHAPE] != arrays.INNER
        used = self._words_of(numbers[is_point])
        self._inner.remove(numbers[~is_point])
        self._index.remove(numbers[is_point])
        self._leave(numbers)
        self.vocabulary.release(*used)

    def _leave(self, numbers: Keys) -> None:
        """Free numbers whose points are gone, and trees and shapes that no conjunction has."""
        felled = np.empty(len(numbers), dtype=np.int64)
        gone = leave(self._state, numbers, self._index.state.links, felled)
        self._index.fell(felled[:gone])
        self._shapes = {
            shape: row for shape, row in self._shapes.items() if self._state.shapes[row, ShapeColumn.LIVE]
        }

    def _sorted(self, batch: EncodedConjunctions) -> tuple[list[tuple[Shape, Keys]], Keys]:
        """Return the places of the conjunctions that are points, by shape, and of the others."""
        sizes = np.diff(batch.offsets)
        groups: list[tuple[Shape, Keys]] = []
        others = [np.flatnonzero((sizes == 0) | (sizes > arrays.MOST_PREDICATES))]
        for width in range(1, arrays.MOST_PREDICATES + 1):
            wide = np.flatnonzero(sizes == width)
            tags = batch.tags[batch.offsets[wide][:, None] + np.arange(width)]
            for alike_ in alike(tags):
                left = wide[alike_]
                for shape in shapes_of(tuple(tags[alike_[0]].tolist())):
                    fit = shape.fits(*_tables(batch, left, width)[1:])
                    if fit.any() and self._row(shape) is not None:
                        groups.append((shape, left[fit]))
                        left = left[~fit]
                others.append(left)
        return groups, np.sort(np.concatenate(others))

    def _row(self, shape: Shape) -> int | None:
        """Return the row of a shape, a new one if it is new; None if there are too many to search for each event."""
        row = self._shapes.get(shape)
        if row is None:
            free = set(range(arrays.MOST_SHAPES)).difference(self._shapes.values())
            if not free:
                return None
            row = self._shapes[shape] = min(free)
            self._state.shapes[row] = shape.row()
            self._state.totals[Total.SHAPES] = max(self._state.totals[Total.SHAPES], row + 1)
        return row

    def _enter(self, shape: Shape, numbers: Keys, tags: Int64s, lows: Int64s, highs: Int64s) -> None:
        """Add conjunctions of one shape to the trees of their equalities' values."""
        keys = np.zeros((len(numbers), arrays.MOST_EQUALS), dtype=np.int64)
        keys[:, : len(shape.equalities)] = lows[:, shape.equalities]
        fresh = np.empty(len(numbers), dtype=np.int64)
        found = tree_all(self._state, numbers, self._shapes[shape], keys, fresh)
        self._state.trees.keys[fresh[:found], arrays.ROOT] = self._index.plant(found)
        roots = self._state.trees.keys[self._store.rows[numbers, StoredColumn.TREE], arrays.ROOT]
        x1, x2 = shape.points(lows, highs)
        if len(numbers) and (roots == roots[0]).all():
            self._index.add(int(roots[0]), numbers, x1, x2)
        else:
            self._index.add_scattered(roots, numbers, x1, x2)
        self.vocabulary.retain(tags.reshape(-1), lows.reshape(-1))

    # matching and recall

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin."""
        others, other_ends = self._inner.match_encoded(events)
        points, ends = self._match_points(events)
        found = np.empty(len(points) + len(others), dtype=np.int64)
        inner = self._inner._store  # noqa: SLF001 - one of us
        owner, keys = inner.owner, inner.ids.keys
        join(points, ends, others, other_ends, owner, keys, found)
        residual = others[others >= NEEDS_RESIDUAL] - NEEDS_RESIDUAL
        self._inner_numbers = dict(zip(keys[owner[residual], 0].tolist(), residual.tolist(), strict=True))
        self._state.totals[Total.EVENTS] += len(ends) - 1
        return found, ends + other_ends

    def _match_points(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that are points and that each event satisfies, and where each event's begin."""
        count, shapes = len(events.offsets) - 1, int(self._state.totals[Total.SHAPES])
        if not self._shapes:
            return np.empty(0, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
        values = _values(events.lows)
        pairs = np.full(self.vocabulary.names.top * FIELDS, -1, dtype=np.int64)
        room = max(shapes, min(shapes * count, _ROOM))
        which = np.empty(room, dtype=np.int64)
        asked = Rectangles(np.empty(room, dtype=np.int64), *(np.empty(room) for _ in range(4)))
        parts: list[Keys] = []
        sizes = np.zeros(count + 1, dtype=np.int64)
        done = 0
        while done < count:
            done, questions = rectangles_of(self._state, events, values, done, asked, which, pairs)
            found, offsets = self._index.find(Rectangles._make(column[:questions] for column in asked))
            np.add.at(sizes, which[:questions] + 1, np.diff(offsets))
            parts.append(found)
            self._state.totals[Total.RECTANGLES] += questions
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64), np.cumsum(sizes)

    def _find_one(self, attributes: Mapping[str, Value]) -> IdArray:
        pairs = self._single_events.encode(attributes)
        inner = self._inner
        has_others = inner._store.counters[StoreCounter.LIVE] > 0  # noqa: SLF001 - one of us
        self._others = inner._find_encoded(attributes, pairs) if has_others else _NONE  # noqa: SLF001
        return self._find_encoded(attributes, pairs)

    def _match_event(self, event: Any, pairs: int) -> int:
        if len(self._others) >= self._single_events.room:
            return NO_ROOM
        return match_event(self._addressed.address(self._all_for(pairs)), event, self._others)

    def _wanted_room(self) -> int:
        return 2 * len(self._others)

    def _all_for(self, pairs: int) -> PointsState:
        """Return the state and the points, with room for an event of so many pairs."""
        known, fields = self._addressed.state, self.vocabulary.names.top * FIELDS
        has_room = known is not None and len(known.values.at) >= pairs and len(known.pairs) >= fields
        if known is None or not has_room:
            return _for_single_event(self._state, self._index.state, 2 * pairs, 2 * fields)
        if known.state is not self._state or known.points is not self._index.state:
            return known._replace(state=self._state, points=self._index.state)
        return known

    def _maintain(self, events: int) -> None:
        self._inner._maintain(events)  # noqa: SLF001 - one of us

    def _residual_clauses(self, numbers: list[int]) -> dict[int, Clauses]:
        inner = {self._inner_numbers[number]: number for number in numbers}
        left = self._inner._residual_clauses(list(inner))  # noqa: SLF001 - one of us
        return {inner[number]: clauses for number, clauses in left.items()}

    def _recall(self, numbers: Keys, begin: int, into: Expressions) -> int:
        """Write the predicates of conjunctions from `begin` on into `into`; return the first one that did not fit."""
        into.offsets[0] = into.bounds[0] = count = 0
        for i, number in enumerate(numbers[begin:].tolist()):
            predicates = self._predicates_of(number)
            end = count + len(predicates[0])
            if i == len(into.numbers) or end > len(into.tags):
                return begin + i
            for column, values in zip(into[3:6], predicates, strict=True):
                column[count:end] = values
            into.bounds[count + 1 : end + 1] = np.arange(count + 1, end + 1)
            into.numbers[i], into.offsets[i + 1] = number, end
            count = end
        return len(numbers)

    def _predicates_of(self, number: int) -> tuple[Sequence[int] | Keys, ...]:
        """Return the tags, lows and highs of a conjunction's predicates, in the order they were given."""
        row, tree = self._store.rows[number, [StoredColumn.SHAPE, StoredColumn.TREE]].tolist()
        if row == arrays.INNER:
            numbers = np.array(self._inner._numbers_of(number), dtype=np.int64)  # noqa: SLF001 - one of us
            return next(self._inner._recalled(numbers))[3:6]  # noqa: SLF001
        shape = Shape.of_row(self._state.shapes[row])
        axes = [key_of_number(number_) for number_ in self._index.point(number)]
        meant = [*self._state.trees.keys[tree, 1 : 1 + arrays.MOST_EQUALS].tolist(), *axes]
        both = [(axes[0], axes[1]) if role == arrays.BETWEEN else (meant[role],) * 2 for role in shape.roles]
        return shape.tags, [low for low, _ in both], [high for _, high in both]

    def stats(self) -> MatcherStats:
        """Return how much is stored and what that costs, the inner matcher's share included."""
        with self._lock:
            mine, inner = super().stats(), self._inner.stats()
            return msgspec.structs.replace(
                mine,
                predicates=mine.predicates + inner.predicates,
                bytes=mine.bytes + inner.bytes,
                details={**mine.details, "conjunctions that are no points": inner.conjunctions},
            )

    def _details(self) -> dict[str, int | float]:
        """Return the sizes of the index and its work per event."""
        totals = self._state.totals
        return {
            "points": len(self._index),
            "shapes": len(self._shapes),
            "trees": hash_index.live_entries(self._state.trees),
            "rectangles per event": float(totals[Total.RECTANGLES]) / max(float(totals[Total.EVENTS]), 1.0),
        }

    # saving

    def _words_of(self, numbers: Keys) -> tuple[Keys, Keys]:
        """Return the tags of points' predicates and the keys of their equalities, as the vocabulary holds them."""
        none = np.empty(0, dtype=np.int64)
        held = [(none, none)]
        rows = self._store.rows[numbers, StoredColumn.SHAPE]
        for row in np.unique(rows).tolist():
            shape, those = Shape.of_row(self._state.shapes[row]), numbers[rows == row]
            lows = np.zeros((len(those), len(shape.tags)), dtype=np.int64)
            keys = self._state.trees.keys[self._store.rows[those, StoredColumn.TREE]]
            lows[:, shape.equalities] = keys[:, 1 : 1 + len(shape.equalities)]
            held.append((np.tile(np.array(shape.tags), len(those)), lows.reshape(-1)))
        return np.concatenate([tags for tags, _ in held]), np.concatenate([lows for _, lows in held])

    def _vocabulary_use(self) -> tuple[Keys, Keys]:
        """Return the predicates of all conjunctions, each as often as it occurs."""
        numbers = numbers_in_use(self._store)
        mine = self._words_of(numbers[self._store.rows[numbers, StoredColumn.SHAPE] != arrays.INNER])
        others = self._inner._vocabulary_use()  # noqa: SLF001 - one of us
        return np.concatenate([mine[0], others[0]]), np.concatenate([mine[1], others[1]])

    @contextmanager
    def parts(self) -> Iterator[MatcherParts]:
        """Return all arrays by name, the inner matcher's among them, and the words of all predicates."""
        with self._inner.parts() as inner, super().parts() as mine:
            yield MatcherParts(
                mine.options,
                {**mine.arrays, **{_INNER_PARTS + name: array for name, array in inner.arrays.items()}},
                {_INNER_PARTS + name: document for name, document in inner.documents.items()},
                mine.vocabulary,
            )

    def restore(self, parts: MatcherParts) -> None:
        """Become the matcher that gave these parts."""
        with self._lock:
            super().restore(parts)
            self._inner.restore(MatcherParts({}, _inner_of(parts.arrays), _inner_of(parts.documents)))
            used = np.flatnonzero(self._state.shapes[:, ShapeColumn.LIVE]).tolist()
            self._shapes = {Shape.of_row(self._state.shapes[row]): row for row in used}

    @classmethod
    def warm_up(cls) -> None:
        """Compile all kernels that are not compiled yet, the inner matcher's included."""
        Dynamic.warm_up()
        super().warm_up()


def _for_single_event(state: State, points: PointState, pairs: int, fields: int) -> PointsState:
    """Return the state and the points with room for an event of so many pairs, and for so many fields."""
    asked = Rectangles(
        np.empty(arrays.MOST_SHAPES, dtype=np.int64), *(np.empty(arrays.MOST_SHAPES) for _ in range(4))
    )
    return PointsState(
        state,
        points,
        Values(*(np.empty(pairs) for _ in range(3))),
        np.full(fields, -1, dtype=np.int64),
        asked,
        np.empty(arrays.MOST_SHAPES, dtype=np.int64),
        np.empty(DEPTH, dtype=np.int64),
    )


def _inner_of(parts: Mapping[str, Part]) -> dict[str, Part]:
    """Return the inner matcher's parts, under its own names."""
    return {
        name.removeprefix(_INNER_PARTS): part for name, part in parts.items() if name.startswith(_INNER_PARTS)
    }


def _tables(batch: EncodedConjunctions, places: Keys, width: int) -> tuple[Int64s, Int64s, Int64s]:
    """Return the tags, lows and highs of conjunctions with so many predicates, a row each."""
    rows = batch.offsets[places][:, None] + np.arange(width)
    return batch.tags[rows], batch.lows[rows], batch.highs[rows]


def _part(batch: EncodedConjunctions, places: Keys, ids: IdArray) -> EncodedConjunctions:
    """Return some of the conjunctions, under other ids."""
    sizes = np.diff(batch.offsets)[places]
    offsets = np.zeros(len(places) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    rows = np.repeat(batch.offsets[places] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return EncodedConjunctions(ids, offsets, batch.tags[rows], batch.lows[rows], batch.highs[rows])


def _values(keys: Keys) -> Values:
    """Return the numbers of pairs; pairs that are no numbers get arbitrary ones."""
    at = numbers_of(keys)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        return Values(at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf))
