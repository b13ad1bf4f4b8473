"""BE-Tree as a matcher (Sadoghi and Jacobsen 2011, 2013)."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

import numpy as np

from tocsin.matching.base import longer
from tocsin.matching.batches import IdArray
from tocsin.matching.be_tree import state as arrays
from tocsin.matching.be_tree._kernels.adaptation import collect, judge, to_be_moved
from tocsin.matching.be_tree._kernels.matching import forget_events, match, match_event
from tocsin.matching.be_tree._kernels.placement import place, take_out
from tocsin.matching.be_tree._kernels.records import forget, keep
from tocsin.matching.be_tree.state import Node, NodeInfo, State, StoredColumn, Top, Total, new_state
from tocsin.matching.be_tree.value_lists import release_lists, retain_lists
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import Keys
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.matching.stored_matcher import StoredMatcher, attributes_of
from tocsin.model.errors import MatcherError
from tocsin.structures import hash_index
from tocsin.structures.addresses import Addressed

_PACE: Final = 20  # nodes, partitions or conjunctions reviewed per event,
_LEAST: Final = 64  # but at least so many per call
_KEPT: Final = 0.5  # weight of earlier windows in the shares of attributes
_LARGEST: Final = 2**31 - 1  # options are stored in so many bits
_WAITING, _COLLECTING, _JUDGING, _MOVING = range(4)  # phases of a review


@register("be-tree")
class BeTree(StoredMatcher):
    """Keeps conjunctions in the leaves of a tree that divides space by attributes and by their values, in turn.

    A leaf holds up to `capacity` conjunctions. An overfull one is divided by attributes that at least `min_partition` of
    them have. The rank of an attribute decides which comes first; `alpha` is the weight of false candidates in it, against
    the number of conjunctions with the attribute. False candidates are counted in windows of `window` events, and
    conjunctions in partitions whose rank has fallen are moved.
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
        self._addressed = Addressed[State](arrays.BeTreeStateAddress)
        self._phase = _WAITING
        self._reviewed = 0  # the next node, partition or conjunction of the phase
        self._seen = 0  # events since the current window began
        self._is_first = True  # whether no window was reviewed yet
        self._counted = 0  # events of the window under review; 0 for the first

    # adding and removing

    def _make_room(self, expressions: Expressions) -> None:
        widest = int(np.diff(expressions.offsets).max(initial=0))
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._state = arrays.with_conjunctions(self._state, len(expressions.numbers), widest)
        self._state = retain_lists(self._state, expressions)

    def _keep(self, ids: IdArray, expressions: Expressions) -> None:
        keep(self._state, ids, expressions)

    def _forget(self, expressions: Expressions) -> None:
        forget(self._state, expressions)
        self._release(expressions)
        used, attributes = attributes_of(expressions), self._state.attributes
        gone = used[attributes.uses[used] == 0]
        attributes.seen[gone] = 0
        attributes.share[gone] = 0.0

    def _release(self, expressions: Expressions) -> None:
        release_lists(self._state, expressions)
        super()._release(expressions)

    def _records(self, numbers: Keys) -> tuple[Keys, Keys, Keys]:
        rows, stored = self._state.leaves.rows, self._store.rows[numbers]
        at = self._state.nodes[stored[:, StoredColumn.NODE], Node.LEAF] + stored[:, StoredColumn.ROW]
        return rows, at + 1, rows[at, 1]

    def _place(self, expressions: Expressions) -> None:
        """Put conjunctions into the tree, and split the leaves that become overfull."""
        done, count = 0, len(expressions.numbers)
        while done < count or self._state.tops[Top.OVERFULL] > 0:
            predicates = len(expressions.tags) - int(expressions.offsets[done])
            self._state = arrays.with_nodes(self._state, count - done, 2 * predicates + count - done)
            done = place(self._state, expressions, done)

    def _withdraw(self, expressions: Expressions) -> None:
        take_out(self._state, expressions.numbers)

    # adaptation

    def _maintain(self, events: int) -> None:
        """Review a few nodes, partitions or conjunctions per event, once a window of events is full.

        First the false candidates of nodes are collected, then partitions are ranked by them, then conjunctions below
        partitions whose rank has fallen are moved.
        """
        self._seen += events
        if self._phase == _WAITING:
            if self._seen < self.window:
                return
            self._begin_window()
        state, end = self._state, self._reviewed + max(_PACE * events, _LEAST)
        if self._phase == _COLLECTING:
            self._reviewed = collect(state, self._reviewed, end)
            self._enter_if(self._reviewed >= state.tops[Top.NODES], _JUDGING)
        elif self._phase == _JUDGING:
            self._reviewed = judge(state, self._reviewed, end, self._counted)
            self._enter_if(self._reviewed >= hash_index.top_entry(state.partition_index), _MOVING)
        else:
            moves = np.empty(max(events, 1), dtype=np.int64)
            self._reviewed, found = to_be_moved(state, self._reviewed, end, moves)
            self._move(moves[:found])
            self._enter_if(self._reviewed >= state.store.counters[StoreCounter.TOP], _WAITING)

    def _enter_if(self, is_done: bool, phase: int) -> None:
        if is_done:
            self._phase, self._reviewed = phase, 0

    def _begin_window(self) -> None:
        """Close the current window of events, to rank by, and begin the next."""
        attributes, totals = self._state.attributes, self._state.totals
        kept = _KEPT if totals[Total.WINDOWS] else 0.0
        attributes.share[:] = kept * attributes.share + (1.0 - kept) / self._seen * attributes.seen
        predicates = int(attributes.uses.sum(dtype=np.int64)) / max(
            int(self._store.counters[StoreCounter.LIVE]), 1
        )
        totals[Total.SCALE] = attributes.share.sum() / predicates if predicates else 1.0
        attributes.seen[:] = 0
        totals[Total.WINDOWS] += 1
        self._phase, self._reviewed = _COLLECTING, 0
        # The number of events behind the first misses that nodes report is not known.
        self._counted, self._seen = 0 if self._is_first else self._seen, 0
        self._is_first = False

    def _move(self, numbers: Keys) -> None:
        self._relocate(self._recalled(numbers))
        self._state.totals[Total.MOVES] += len(numbers)

    # matching

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin.

        A number above `NEEDS_RESIDUAL` is a conjunction whose residual predicates are still to be evaluated.
        """
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(max(1024, 4 * count), dtype=np.int64)
        self._finish_pending()
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._state = arrays.with_pairs(self._state, 3 * int(np.diff(events.offsets).max(initial=0)) + 1)
        if self._state.tops[Top.EPOCH] + 2 * count > arrays.MOST_EVENTS:
            forget_events(self._state)
        done = 0
        while done < count:
            self._state.tops[[Top.NEEDED_MATCHES, Top.NEEDED_QUEUE]] = 0
            done = match(self._state, events, done, found, offsets)
            needed = int(self._state.tops[Top.NEEDED_MATCHES])
            if needed > len(found):
                found = longer(found, int(offsets[done]), needed)
            self._make_state_room()
        return found[: offsets[-1]], offsets

    def _match_event(self, event: Any, pairs: int) -> int:
        self._finish_pending()
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._state = arrays.with_pairs(self._state, 3 * pairs + 1)
        return match_event(self._addressed.address(self._state), event)

    def _wanted_room(self) -> int:
        return int(self._state.tops[Top.NEEDED_MATCHES])

    def _make_state_room(self) -> None:
        needed = int(self._state.tops[Top.NEEDED_QUEUE])
        if needed > len(self._state.queue):
            self._state = self._state._replace(queue=np.empty(2 * needed, np.int64))

    # figures

    def _details(self) -> dict[str, int | float]:
        """Return the size of the tree and its work per event."""
        state = self._state
        events = max(float(state.totals[Total.EVENTS]), 1.0)
        return {
            "capacity": self.capacity,
            "nodes": int(state.tops[Top.LIVE_NODES]),
            "partitions": hash_index.live_entries(state.partition_index),
            "depth": self._depth(),
            "raised leaves": self._raised(),
            "nodes per event": float(state.totals[Total.VISITS]) / events,
            "checks per event": float(state.totals[Total.CHECKS]) / events,
            "partitions recycled": int(state.totals[Total.RECYCLED]),
            "conjunctions moved": int(state.totals[Total.MOVES]),
        }

    def _raised(self) -> int:
        """Return how many leaves have a raised capacity."""
        info = self._state.info[: self._state.tops[Top.NODES]]
        return int(
            np.count_nonzero((info[:, NodeInfo.MEMBERS] >= 0) & (info[:, NodeInfo.CAPACITY] > self.capacity))
        )

    def _depth(self) -> int:
        """Return the number of nodes on the longest path from the root."""
        info = self._state.info[: self._state.tops[Top.NODES]]
        nodes, depth = np.flatnonzero(info[:, NodeInfo.MEMBERS] >= 0), 0
        while len(nodes):
            nodes, depth = info[nodes, NodeInfo.PARENT], depth + 1
            nodes = nodes[nodes >= 0]
        return depth

    def restore(self, parts: MatcherParts) -> None:
        """Restore a matcher from its parts; its window of events restarts."""
        with self._lock:
            super().restore(parts)
            self._state.attributes.seen[:] = 0

    @classmethod
    def _eager(cls) -> Self:
        return cls(capacity=1, window=1)

    def _use(self, events: list[dict[str, object]]) -> None:
        for _ in range(40):  # until a window is reviewed, and conjunctions are moved
            super()._use(events)


def _is_number(value: object, *types: type) -> bool:
    """Tell whether a value has one of these types and is no boolean."""
    return isinstance(value, types) and not isinstance(value, bool)
