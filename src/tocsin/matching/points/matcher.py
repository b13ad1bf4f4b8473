"""The matcher `points`: what compares up to two constants lives in the point index, all else in another matcher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from tocsin.language import parse_condition, to_dnf
from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching._kernels.id_chains import SIBLING, unlink
from tocsin.matching.base import IndexedMatcher
from tocsin.matching.batches import Clauses, ConjunctionBatch, EventBatch, IdArray
from tocsin.matching.encoding.codes import FIELDS, Keys, key_of_number
from tocsin.matching.encoding.conjunctions import EncodedConjunctions
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.id_chains import Links, taken_from
from tocsin.matching.le_subscribe.dynamic import Dynamic
from tocsin.matching.matcher import MatcherStats
from tocsin.matching.points import state as arrays
from tocsin.matching.points._kernels.asking import ask, join
from tocsin.matching.points._kernels.storing import leave, number_all, tree_all
from tocsin.matching.points.shapes import Shape, alike, numbers_of, shapes_of
from tocsin.matching.points.state import (
    BETWEEN,
    EVENTS,
    FORM_SHAPE,
    FORM_TREE,
    INNER,
    LIVE,
    LIVE_FORMS,
    MOST_EQUALS,
    MOST_PREDICATES,
    MOST_SHAPES,
    PREDICATES,
    QUESTIONS,
    ROOT,
    SHAPES,
    TOP_FORM,
    State,
    Values,
    new_state,
)
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.structures import hash_index
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.point_index.index import PointIndex
from tocsin.structures.point_index.state import Rectangles
from tocsin.structures.point_index.state import State as PointState

Part = TypeVar("Part")

_INNER_PARTS: Final = "inner."
_ROOM: Final = 1 << 16  # rectangles that are asked at a time


@register("points")
class Points(IndexedMatcher):
    """Keeps conjunctions as points: their constants are coordinates, and an event asks for all in a rectangle.

    Those are points that have up to two equalities and compare up to two numbers with attributes: `a > 3`, `a > 3
    and b < 5`, `a between 3 and 5`, and `a < 3 and b >= 3 and c <= 5 and d > 5`, which a reformulated view is. Each
    shape has a tree for each of the values that the equalities ask for. All else is held by `dynamic`.
    """

    saved_states: ClassVar[tuple[str, ...]] = ("_state", "_points")

    def __init__(self, *, vocabulary: Vocabulary | None = None) -> None:
        super().__init__(vocabulary)
        self._state: State = new_state()
        self._index = PointIndex()
        self._inner = Dynamic(vocabulary=self.vocabulary)
        self._shapes: dict[Shape, int] = {}
        self._unsure: dict[int, int] = {}  # of the last match, by our number the inner matcher's

    @property
    def _points(self) -> PointState:
        return self._index.state

    @_points.setter
    def _points(self, state: PointState) -> None:
        self._index.state = state

    # changes

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        with self._lock:
            groups, others = self._sorted(batch)
            numbers = np.empty(len(batch.ids), dtype=np.int64)
            self._state = arrays.with_forms(self._state, len(numbers))
            number_all(self._state, batch.ids, numbers)
            try:
                if len(others):
                    self._inner.add_encoded(_part(batch, others, numbers[others]))
            except BaseException:
                unlink(*self._links(), self._state.owner, numbers)
                self._leave(numbers)
                raise
            for shape, places in groups:
                self._enter(shape, numbers[places], *_tables(batch, places, len(shape.tags)))

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        with self._lock:
            for numbers in taken_from(ids, self._links):
                is_point = self._state.forms[numbers, FORM_SHAPE] != INNER
                held = self._said_by(numbers[is_point])
                self._inner.remove(numbers[~is_point])
                self._index.remove(numbers[is_point])
                self._leave(numbers)
                self.vocabulary.release(*held)

    def _links(self) -> Links:
        return self._state.ids, self._state.first, self._state.forms

    def _leave(self, numbers: Keys) -> None:
        """Give up numbers whose points are gone, and trees and shapes that nobody has."""
        felled = np.empty(len(numbers), dtype=np.int64)
        gone = leave(self._state, numbers, self._index.state.links, felled)
        self._index.fell(felled[:gone])
        self._shapes = {shape: row for shape, row in self._shapes.items() if self._state.shapes[row, LIVE]}

    def _sorted(self, batch: EncodedConjunctions) -> tuple[list[tuple[Shape, Keys]], Keys]:
        """Return the conjunctions that are points, by shape, and those that are not, by their places."""
        sizes = np.diff(batch.offsets)
        groups: list[tuple[Shape, Keys]] = []
        others = [np.flatnonzero((sizes == 0) | (sizes > MOST_PREDICATES))]
        for width in range(1, MOST_PREDICATES + 1):
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
        """Return the row of a shape, a new one if it is new; None if there are too many to ask an event about."""
        row = self._shapes.get(shape)
        if row is None:
            free = set(range(MOST_SHAPES)).difference(self._shapes.values())
            if not free:
                return None
            row = self._shapes[shape] = min(free)
            self._state.shapes[row] = shape.row()
            self._state.tops[SHAPES] = max(self._state.tops[SHAPES], row + 1)
        return row

    def _enter(
        self,
        shape: Shape,
        numbers: Keys,
        tags: NDArray[np.int64],
        lows: NDArray[np.int64],
        highs: NDArray[np.int64],
    ) -> None:
        """Put conjunctions of one shape into the trees of what they ask to be equal."""
        keys = np.zeros((len(numbers), MOST_EQUALS), dtype=np.int64)
        keys[:, : len(shape.equalities)] = lows[:, shape.equalities]
        fresh = np.empty(len(numbers), dtype=np.int64)
        found = tree_all(self._state, numbers, self._shapes[shape], keys, fresh)
        self._state.trees.keys[fresh[:found], ROOT] = self._index.plant(found)
        roots = self._state.trees.keys[self._state.forms[numbers, FORM_TREE], ROOT]
        x1, x2 = shape.points(lows, highs)
        if len(numbers) and (roots == roots[0]).all():
            self._index.add(int(roots[0]), numbers, x1, x2)
        else:
            self._index.add_scattered(roots, numbers, x1, x2)
        self.vocabulary.hold(tags.reshape(-1), lows.reshape(-1))

    # questions

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin.

        One above `NEEDS_RESIDUAL` has predicates left that only Python can tell.
        """
        others, other_ends = self._inner.match_encoded(events)
        points, ends = self._match_points(events)
        found = np.empty(len(points) + len(others), dtype=np.int64)
        owner, keys = self._inner._owner(), self._inner._ids().keys  # noqa: SLF001 - one of us
        join(points, ends, others, other_ends, owner, keys, found)
        unsure = others[others >= NEEDS_RESIDUAL] - NEEDS_RESIDUAL
        self._unsure = dict(zip(keys[owner[unsure], 0].tolist(), unsure.tolist(), strict=True))
        self._state.tops[EVENTS] += len(ends) - 1
        return found, ends + other_ends

    def _match_points(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that are points and that each event satisfies, and where each event's begin."""
        count, shapes = len(events.offsets) - 1, int(self._state.tops[SHAPES])
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
            done, questions = ask(self._state, events, values, done, asked, which, pairs)
            found, offsets = self._index.find(Rectangles._make(column[:questions] for column in asked))
            np.add.at(sizes, which[:questions] + 1, np.diff(offsets))
            parts.append(found)
            self._state.tops[QUESTIONS] += questions
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64), np.cumsum(sizes)

    def _maintain(self, events: int) -> None:
        self._inner._maintain(events)  # noqa: SLF001 - one of us

    def _residual_clauses(self, numbers: list[int]) -> dict[int, Clauses]:
        """Return, of conjunctions that are unsure, the clauses that have yet to be told."""
        inner = {self._unsure[number]: number for number in numbers}
        left = self._inner._residual_clauses(list(inner))  # noqa: SLF001 - one of us
        return {inner[number]: clauses for number, clauses in left.items()}

    def _ids(self) -> HashIndex:
        return self._state.ids

    def _owner(self) -> NDArray[np.int32]:
        return self._state.owner

    def _expressions_of(self, entry: int) -> list[Clauses]:
        """Return the conjunctions of a subscription, in the order they came."""
        chain = self._chain(int(self._state.first[entry]), self._state.forms[:, SIBLING])
        return [self._decode(number) for number in chain]

    def _decode(self, number: int) -> Clauses:
        """Return the predicates of a conjunction, in the order they were given, each a clause."""
        row, tree = self._state.forms[number, [FORM_SHAPE, FORM_TREE]].tolist()
        if row == INNER:
            entry = hash_index.find(self._inner._ids(), number, 0, 0)  # noqa: SLF001 - one of us
            return self._inner._expressions_of(entry)[0]  # noqa: SLF001
        shape = Shape.of_row(self._state.shapes[row])
        axes = [key_of_number(number_) for number_ in self._index.point(number)]
        meant = [*self._state.trees.keys[tree, 1 : 1 + MOST_EQUALS].tolist(), *axes]
        both = ((axes[0], axes[1]) if role == BETWEEN else (meant[role],) * 2 for role in shape.roles)
        return tuple(
            (self.vocabulary.decode(tag, low, high),)
            for tag, (low, high) in zip(shape.tags, both, strict=True)
        )

    def stats(self) -> MatcherStats:
        """Return what is held and what that costs."""
        with self._lock:
            tops, inner = self._state.tops, self._inner.stats()
            return MatcherStats(
                hash_index.live_entries(self._state.ids),
                int(tops[LIVE_FORMS]),
                int(tops[PREDICATES]) + inner.predicates,
                self._bytes() + inner.bytes,
                {
                    "points": len(self._index),
                    "shapes": len(self._shapes),
                    "trees": hash_index.live_entries(self._state.trees),
                    "rectangles per event": float(tops[QUESTIONS]) / max(float(tops[EVENTS]), 1.0),
                    "conjunctions that are no points": inner.conjunctions,
                },
            )

    # saving

    def _said_by(self, numbers: Keys) -> tuple[Keys, Keys]:
        """Return the tags of points' predicates and the keys of their equalities, as the vocabulary holds them."""
        none = np.empty(0, dtype=np.int64)
        held = [(none, none)]
        rows = self._state.forms[numbers, FORM_SHAPE]
        for row in np.unique(rows).tolist():
            shape, those = Shape.of_row(self._state.shapes[row]), numbers[rows == row]
            lows = np.zeros((len(those), len(shape.tags)), dtype=np.int64)
            keys = self._state.trees.keys[self._state.forms[those, FORM_TREE]]
            lows[:, shape.equalities] = keys[:, 1 : 1 + len(shape.equalities)]
            held.append((np.tile(np.array(shape.tags), len(those)), lows.reshape(-1)))
        return np.concatenate([tags for tags, _ in held]), np.concatenate([lows for _, lows in held])

    def _vocabulary_use(self) -> tuple[Keys, Keys]:
        """Return the predicates of all conjunctions, each as often as it occurs."""
        numbers = np.flatnonzero(self._state.owner[: self._state.tops[TOP_FORM]] >= 0)
        mine = self._said_by(numbers[self._state.forms[numbers, FORM_SHAPE] != INNER])
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
            used = np.flatnonzero(self._state.shapes[:, LIVE]).tolist()
            self._shapes = {Shape.of_row(self._state.shapes[row]): row for row in used}

    @classmethod
    def warm_up(cls) -> None:
        """Compile what is not compiled yet, by using a small matcher of this kind in every way."""
        Dynamic.warm_up()
        matcher = cls()
        texts = ["a = 1 and b > 2", "a in (1, 2) and c is present", "a > 3 and b < 5", "true"]
        matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
        matcher.match(EventBatch.of_dicts([{"a": 1, "b": 3, "c": 2}]))
        matcher.remove(np.arange(len(texts)))


def _inner_of(parts: Mapping[str, Part]) -> dict[str, Part]:
    """Return those that are the inner matcher's, under its own names."""
    return {
        name.removeprefix(_INNER_PARTS): part for name, part in parts.items() if name.startswith(_INNER_PARTS)
    }


def _tables(
    batch: EncodedConjunctions, places: Keys, width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
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
    """Return what pairs are as numbers; of those that are none, something."""
    at = numbers_of(keys)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        return Values(at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf))
