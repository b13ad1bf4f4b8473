"""BE-Tree as a matcher (Sadoghi and Jacobsen 2011, 2013)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tocsin.language import parse_condition, to_dnf
from tocsin.matching._kernels.id_chains import SIBLING, unlink
from tocsin.matching.batches import Clauses, ConjunctionBatch, EventBatch, IdArray
from tocsin.matching.be_tree import state as arrays
from tocsin.matching.be_tree._kernels.adaptation import collect, judge, to_be_moved
from tocsin.matching.be_tree._kernels.matching import match
from tocsin.matching.be_tree._kernels.placement import place, take_out
from tocsin.matching.be_tree._kernels.storing import leave, number_all, recall
from tocsin.matching.be_tree.state import (
    CAPACITY,
    CHECKS,
    EPOCH,
    EVENTS,
    LIVE_FORMS,
    LIVE_NODES,
    MEMBERS,
    MOVES,
    PREDICATES,
    QUEUE_ROOM,
    RECYCLED,
    ROOM,
    SCALE,
    SIZE,
    TODO,
    TOP_FORM,
    TOP_NODE,
    UP,
    VISITS,
    WINDOWS,
    Expressions,
    State,
    new_state,
)
from tocsin.matching.be_tree.value_lists import hold_lists, release_lists
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Keys, Op
from tocsin.matching.encoding.conjunctions import EncodedConjunctions
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.id_chains import Links, taken_from
from tocsin.matching.matcher import MatcherStats
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.matching.unshared_base import IndexedMatcher
from tocsin.model.errors import MatcherError
from tocsin.structures import hash_index
from tocsin.structures.hash_index import HashIndex

_FIELD: Final = (1 << FIELD_BITS) - 1
_SLICE: Final = 1 << 16  # conjunctions that are handled at a time
_PACE: Final = 20  # nodes, partitions or conjunctions that are reviewed for each event
_LEAST: Final = 64  # or so many, for a call with few events
_KEPT: Final = 0.5  # of what is known of attributes, when a window has been counted
_MOST_EVENTS: Final = 1 << 30  # that can be numbered
_LARGEST: Final = 2**31 - 1  # option: nodes keep their capacity in so many bits
_WAITING, _COLLECTING, _JUDGING, _MOVING = range(4)


@register("be-tree")
class BeTree(IndexedMatcher):
    """Keeps conjunctions in the leaves of a tree that cuts space by attributes, and then by values, in turn.

    A leaf holds up to `capacity` of them; where it has more it is cut, by attributes that at least `min_partition` of them
    have. Which attribute comes first is told by rank, in which `alpha` is what false candidates weigh against the
    number of conjunctions that have it. They are counted in windows of `window` events, and what has become
    worse is placed anew.
    """

    saved_options: ClassVar[tuple[str, ...]] = ("capacity", "min_partition", "alpha", "window")

    def __init__(
        self,
        *,
        capacity: int = 5,
        min_partition: int = 1,
        alpha: float = 0.9,
        window: int = 1_000,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        for name, value in (("capacity", capacity), ("min_partition", min_partition), ("window", window)):
            if not _is_number(value, int) or not 1 <= value <= _LARGEST:
                raise MatcherError(f"`{name}` is a whole number from 1 to {_LARGEST}, not {value!r}")
        if not _is_number(alpha, int, float) or not 0 <= alpha <= 1:
            raise MatcherError(f"`alpha` is a number from 0 to 1, not {alpha!r}")
        super().__init__(vocabulary)
        self.capacity = capacity
        self.min_partition = min_partition
        self.alpha = alpha
        self.window = window
        self._state: State = new_state(capacity, min_partition, alpha)
        self._phase = _WAITING
        self._reviewed = 0  # what the phase has come to
        self._seen = 0  # events since nodes began to be looked at
        self._is_first = True  # whether they are looked at for the first time
        self._counted = 0  # events between two looks at a node; 0 if it is the first
        self._moving: Expressions | None = None  # conjunctions that are under way to another place

    # changes

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        with self._lock:
            self._finish_pending()
            numbers = np.empty(len(batch.ids), dtype=np.int64)
            forms = Expressions(numbers, batch.offsets, batch.tags, batch.lows, batch.highs)
            widest = int(np.diff(batch.offsets).max(initial=0))
            self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
            self._state = arrays.with_forms(self._state, len(batch.ids), widest)
            self._state = hold_lists(self._state, self.vocabulary, batch.tags, batch.lows)
            self.vocabulary.retain(batch.tags, batch.lows)
            number_all(self._state, batch.ids, forms)
            try:
                self._place(forms)
            except BaseException:
                take_out(self._state, forms.numbers)
                unlink(*self._links(), self._state.owner, forms.numbers)
                self._leave(forms)
                raise

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        with self._lock:
            self._finish_pending()
            for numbers in taken_from(ids, self._links):
                for forms in self._recalled(numbers):
                    take_out(self._state, forms.numbers)
                    self._leave(forms)

    def _links(self) -> Links:
        return self._state.ids, self._state.first, self._state.forms

    def _place(self, forms: Expressions) -> None:
        """Put conjunctions into the tree, and split the leaves that have too many members then."""
        done, count = 0, len(forms.numbers)
        while done < count or self._state.tops[TODO] > 0:
            self._state = arrays.with_nodes(
                self._state, count - done, 2 * (len(forms.tags) - int(forms.offsets[done])) + count - done
            )
            done = place(self._state, forms, done)

    def _leave(self, forms: Expressions) -> None:
        """Give up conjunctions that are taken out, and what is known of attributes that no other speaks of."""
        leave(self._state, forms)
        release_lists(self._state, forms.tags, forms.lows)
        self.vocabulary.release(forms.tags, forms.lows)
        named = forms.tags[forms.tags >> FIELD_BITS != Op.RESIDUAL] & _FIELD
        attributes = np.unique(named // FIELDS)
        gone = attributes[self._state.attributes.uses[attributes] == 0]
        self._state.attributes.seen[gone] = 0
        self._state.attributes.share[gone] = 0.0

    def _recalled(self, numbers: Keys) -> Iterator[Expressions]:
        """Return what conjunctions say, a part of them at a time."""
        done = 0
        while done < len(numbers):
            part = numbers[done : done + _SLICE]
            room = int(self._state.forms[part, SIZE].sum(dtype=np.int64))
            tags, lows, highs = np.empty((3, room), dtype=np.int64)
            forms = Expressions(part.copy(), np.empty(len(part) + 1, dtype=np.int64), tags, lows, highs)
            recall(self._state, part, forms)
            yield forms
            done += len(part)

    # adjustment

    def _maintain(self, events: int) -> None:
        """Review a few nodes, partitions or conjunctions for each event, once a window of events has come.

        First the nodes are asked how many of their members were looked at in vain, then partitions are ranked by
        that, then conjunctions below a partition whose rank has fallen are placed anew.
        """
        self._seen += events
        if self._phase == _WAITING:
            if self._seen < self.window:
                return
            self._begin_window()
        state, end = self._state, self._reviewed + max(_PACE * events, _LEAST)
        if self._phase == _COLLECTING:
            self._reviewed = collect(state, self._reviewed, end)
            self._enter_if(self._reviewed >= state.tops[TOP_NODE], _JUDGING)
        elif self._phase == _JUDGING:
            self._reviewed = judge(state, self._reviewed, end, self._counted)
            self._enter_if(self._reviewed >= hash_index.top_entry(state.partition_index), _MOVING)
        else:
            moves = np.empty(max(events, 1), dtype=np.int64)
            self._reviewed, found = to_be_moved(state, self._reviewed, end, moves)
            self._move(moves[:found])
            self._enter_if(self._reviewed >= state.tops[TOP_FORM], _WAITING)

    def _enter_if(self, is_done: bool, phase: int) -> None:
        if is_done:
            self._phase, self._reviewed = phase, 0

    def _begin_window(self) -> None:
        """Take the events that came for the window to rank by, and begin to count anew."""
        attributes, totals = self._state.attributes, self._state.totals
        kept = _KEPT if totals[WINDOWS] else 0.0
        attributes.share[:] = kept * attributes.share + (1.0 - kept) / self._seen * attributes.seen
        predicates = int(attributes.uses.sum(dtype=np.int64)) / max(int(self._state.tops[LIVE_FORMS]), 1)
        totals[SCALE] = attributes.share.sum() / predicates if predicates else 1.0
        attributes.seen[:] = 0
        totals[WINDOWS] += 1
        self._phase, self._reviewed = _COLLECTING, 0
        # What nodes have missed until they are looked at for the first time is of no certain number of events.
        self._counted, self._seen = 0 if self._is_first else self._seen, 0
        self._is_first = False

    def _move(self, numbers: Keys) -> None:
        for forms in self._recalled(numbers):
            self._moving = forms
            take_out(self._state, forms.numbers)
            self._place(forms)
        self._moving = None
        self._state.totals[MOVES] += len(numbers)

    def _finish_pending(self) -> None:
        """Place what an exception kept from being placed."""
        if self._moving is not None:
            take_out(self._state, self._moving.numbers)
            self._place(self._moving)
            self._moving = None

    # questions

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin.

        One above `NEEDS_RESIDUAL` has predicates left that only Python can tell.
        """
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(max(1024, 4 * count), dtype=np.int64)
        self._finish_pending()
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._state = arrays.with_pairs(self._state, 3 * int(np.diff(events.offsets).max(initial=0)) + 1)
        if self._state.tops[EPOCH] + 2 * count > _MOST_EVENTS:
            self._state.attributes.slots[:] = 0
            self._state.tops[EPOCH] = 0
        done = 0
        while done < count:
            self._state.tops[[ROOM, QUEUE_ROOM]] = 0
            done = match(self._state, events, done, found, offsets)
            if self._state.tops[ROOM] > len(found):
                more = np.empty(max(2 * len(found), int(self._state.tops[ROOM])), dtype=np.int64)
                more[: offsets[done]] = found[: offsets[done]]
                found = more
            if self._state.tops[QUEUE_ROOM] > len(self._state.queue):
                self._state = self._state._replace(
                    queue=np.empty(2 * int(self._state.tops[QUEUE_ROOM]), np.int64)
                )
        return found[: offsets[-1]], offsets

    def _residual_clauses(self, numbers: list[int]) -> dict[int, Clauses]:
        """Return, of conjunctions that are unsure, the clauses that have yet to be told."""
        return {number: self._decode(number, only_residual=True) for number in numbers}

    def _decode(self, number: int, *, only_residual: bool = False) -> Clauses:
        """Return the predicates of a conjunction, in the order they were given, each a clause."""
        (forms,) = self._recalled(np.array([number], dtype=np.int64))
        said = zip(forms.tags.tolist(), forms.lows.tolist(), forms.highs.tolist(), strict=True)
        return tuple(
            (self.vocabulary.decode(tag, low, high),)
            for tag, low, high in said
            if not only_residual or tag >> FIELD_BITS == Op.RESIDUAL
        )

    def _ids(self) -> HashIndex:
        return self._state.ids

    def _owner(self) -> NDArray[np.int32]:
        return self._state.owner

    def _expressions_of(self, entry: int) -> list[Clauses]:
        """Return the conjunctions of a subscription, in the order they came."""
        self._finish_pending()
        chain = self._chain(int(self._state.first[entry]), self._state.forms[:, SIBLING])
        return [self._decode(number) for number in chain]

    def stats(self) -> MatcherStats:
        """Return what is held and what that costs."""
        with self._lock:
            state = self._state
            events = max(float(state.totals[EVENTS]), 1.0)
            return MatcherStats(
                hash_index.live_entries(state.ids),
                int(state.tops[LIVE_FORMS]),
                int(state.tops[PREDICATES]),
                self._bytes(),
                {
                    "capacity": self.capacity,
                    "nodes": int(state.tops[LIVE_NODES]),
                    "partitions": hash_index.live_entries(state.partition_index),
                    "depth": self._depth(),
                    "raised leaves": self._raised(),
                    "nodes per event": float(state.totals[VISITS]) / events,
                    "checks per event": float(state.totals[CHECKS]) / events,
                    "partitions recycled": int(state.totals[RECYCLED]),
                    "conjunctions moved": int(state.totals[MOVES]),
                },
            )

    def _raised(self) -> int:
        """Return how many leaves may have more members than usual."""
        about = self._state.about[: self._state.tops[TOP_NODE]]
        return int(np.count_nonzero((about[:, MEMBERS] >= 0) & (about[:, CAPACITY] > self.capacity)))

    def _depth(self) -> int:
        """Return how many nodes the longest way from the root leads through."""
        about = self._state.about[: self._state.tops[TOP_NODE]]
        places, depth = np.flatnonzero(about[:, MEMBERS] >= 0), 0
        while len(places):
            places, depth = about[places, UP], depth + 1
            places = places[places >= 0]
        return depth

    def _vocabulary_use(self) -> tuple[Keys, Keys]:
        """Return the predicates of all conjunctions, each as often as it occurs."""
        self._finish_pending()
        numbers = np.flatnonzero(self._state.owner[: self._state.tops[TOP_FORM]] >= 0)
        none = np.empty(0, dtype=np.int64)
        held = [(none, none), *((forms.tags, forms.lows) for forms in self._recalled(numbers))]
        return np.concatenate([tags for tags, _ in held]), np.concatenate([lows for _, lows in held])

    def restore(self, parts: MatcherParts) -> None:
        """Become the matcher that gave these parts; a window that it was in the middle of begins anew."""
        with self._lock:
            super().restore(parts)
            self._state.attributes.seen[:] = 0

    @classmethod
    def warm_up(cls) -> None:
        """Compile what is not compiled yet, by using a small matcher of this kind in every way."""
        matcher = cls(capacity=1, window=1)
        texts = ["a = 1 and b > 2", "a in (1, 2) and c is present", "s like '%x_'", "true", "a = 2", "a = 3"]
        conditions = [parse_condition(text) for text in texts]
        matcher.add(ConjunctionBatch.of((i, to_dnf(one)) for i, one in enumerate(conditions)))
        for _ in range(4):
            matcher.match(EventBatch.of_dicts([{"a": 1, "b": 1, "c": 2, "d": 3, "s": "x"}]))
        matcher.remove(np.arange(len(texts)))


def _is_number(value: object, *types: type) -> bool:
    """Tell whether a value is of one of these types, and no boolean."""
    return isinstance(value, types) and not isinstance(value, bool)
