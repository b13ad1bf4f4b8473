"""The counting matcher: the baseline against which clustering is measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.matching.encoding.codes import Keys
from tocsin.matching.encoding.conjunctions import EncodedConjunctions
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.le_subscribe._kernels.counting import (
    Counters,
    CountingState,
    CountingStateAddress,
    count_event,
    count_in,
    count_out,
    match_counting,
)
from tocsin.matching.le_subscribe.matcher import ONE_EVENT, ClusteredMatcher
from tocsin.matching.registry import register
from tocsin.structures import chunked_lists
from tocsin.structures.addresses import Addressed
from tocsin.structures.array_types import zeros
from tocsin.structures.growth import grown


@register("counting")
class Counting(ClusteredMatcher):
    """Counts, for each event, the satisfied predicates of every conjunction that has any.

    `between`, `!=` and `not in` are not counted, but evaluated for the conjunctions whose count is complete.
    """

    evaluates_wide_runs = False
    saved_states = (*ClusteredMatcher.saved_states, "_counters")

    def __init__(self, *, vocabulary: Vocabulary | None = None) -> None:
        super().__init__(vocabulary=vocabulary)
        holders, none = chunked_lists.new_chunked_lists(), np.full(1, -1, dtype=np.int64)
        of_slot = np.full(64, -1, dtype=np.int32)
        self._counted = Addressed[CountingState](CountingStateAddress)
        self._counters = zeros(Counters, 64, holders=holders, of_slot=of_slot, unindexed=none)

    def _place(self, batch: EncodedConjunctions, slots: Keys, begin: int, end: int) -> int:
        """Grow the counters, and add conjunctions from `begin` on; return the first one that did not fit."""
        sizes = np.diff(batch.offsets[begin : end + 1])
        state, counters = self._state, self._counters
        counters = grown(counters, ("chunk", "place"), len(state.clusters.words))
        counters = grown(counters, ("indexed", "seen", "touched"), len(state.store.owner) + 1)
        known = len(counters.of_slot)
        counters = grown(counters, ("of_slot",), len(state.predicates.uses))
        counters.of_slot[known:] = -1
        holders = chunked_lists.with_room(
            counters.holders,
            min(int(sizes.sum()), 1 << 16) + (int(sizes.max()) + 1) * chunked_lists.LARGEST,
            2,
        )
        self._counters = counters._replace(holders=holders)
        return count_in(self._state, self._counters, batch.ids[:end], batch.offsets, slots, begin)

    def _detach(self, numbers: Keys, begin: int, gone: Keys) -> tuple[int, int]:
        return count_out(self._state, self._counters, numbers, begin, gone)

    def _match(self, events: EncodedEvents, begin: int, found: Keys, offsets: Keys) -> int:
        return match_counting(self._state, self._counters, events, begin, found, offsets)

    def _match_event(self, event: Any, pairs: int) -> int:
        self._prepare(pairs)
        known = self._counted.state
        if known is None or known.state is not self._state or known.counters is not self._counters:
            known = CountingState(self._state, self._counters)
        return count_event(self._counted.address(known), event, ONE_EVENT)

    def _details(self) -> dict[str, int | float]:
        details = super()._details()
        return {name: details[name] for name in ("distinct predicates", "checks per event")}
