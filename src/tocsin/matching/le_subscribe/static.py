"""The static matcher: tables chosen at once for all subscriptions, by cost and under a limit of space (3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final, Self

import numpy as np

from tocsin.matching.conjunction_store.state import StoreCounter
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.le_subscribe import state as arrays
from tocsin.matching.le_subscribe._kernels.adaptation import Cursor, redistribute, sample_all
from tocsin.matching.le_subscribe.expectations import joint_probabilities
from tocsin.matching.le_subscribe.matcher import ClusteredMatcher
from tocsin.matching.le_subscribe.state import FALLBACK, ClusterTotal
from tocsin.matching.le_subscribe.tables import (
    EAGER,
    Costs,
    add_table,
    checked_width,
    new_sample,
    read_costs,
    schemas_for,
)
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.matching.statistics import Statistics
from tocsin.structures import hash_index

_SAMPLE: Final = 200_000
_STEP: Final = 65_536


@register("static")
class Static(ClusteredMatcher):
    """Clusters all conjunctions at once: greedily, by the checks that a table saves for the space it takes.

    `cluster` does it; a match does it too when the number of conjunctions has doubled since. In between, a new
    conjunction goes under the best access predicate there is. `space` is how many bytes the tables may take for
    each conjunction; None is no limit. Of more than 200,000 conjunctions, a sample
    decides. With `statistics`, the choice fits before the first event.
    """

    saved_options = ("max_attributes", "space", "costs")

    def __init__(
        self,
        *,
        vocabulary: Vocabulary | None = None,
        max_attributes: int = 4,
        space: float | None = 64.0,
        costs: Costs | Mapping[str, float] | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        super().__init__(vocabulary=vocabulary, statistics=statistics)
        self.max_attributes = checked_width(max_attributes)
        self.space = inf if space is None else space  # a saved infinity is null
        self.costs = read_costs(costs)
        self._clustered = 0  # conjunctions when they were last clustered

    def cluster(self) -> None:
        """Choose all tables again for the stored conjunctions and the present statistics, and move the conjunctions."""
        with self._lock:
            self._state.tables.width[: self._state.tables.used[0]] *= -1
            sample = new_sample(_SAMPLE)
            held = int(self._state.store.counters[StoreCounter.LIVE])
            sample_all(self._state, max(1, held // _SAMPLE), sample)
            self._state.tables.width[: self._state.tables.used[0]] *= -1
            kept = self._schemas()
            wanted = schemas_for(
                self._state,
                sample,
                self.max_attributes,
                self.costs,
                space=max(self.space * held, 1 << 20),
                fresh=True,
                correlations=self._correlations(sample),
            )
            for table, schema in kept.items():
                if schema in wanted:
                    self._state.tables.correlation[table] = wanted[schema]
                else:
                    self._state.tables.width[table] *= -1
            for schema, correlation in wanted.items():
                if schema not in kept.values():
                    self._state = add_table(self._state, schema, correlation)
            self._move_all()
            self._expect_combinations(set(self._schemas()) - set(kept))
            emptied = self._state.tables.width < 0
            self._state.tables.width[emptied] = 0
            self._clustered = held

    def _prepare(self, pairs: int) -> None:
        if int(self._state.store.counters[StoreCounter.LIVE]) > max(2 * self._clustered, 64):
            self.cluster()
        super()._prepare(pairs)

    def restore(self, parts: MatcherParts) -> None:
        """Become the matcher that gave these parts."""
        super().restore(parts)
        self._clustered = int(self._state.store.counters[StoreCounter.LIVE])

    @classmethod
    def _eager(cls) -> Self:
        return cls(costs=EAGER)

    def _schemas(self) -> dict[int, tuple[int, ...]]:
        tables = self._state.tables
        return {
            table: tuple(tables.fields[table, : tables.width[table]].tolist())
            for table in range(int(tables.used[0]))
            if tables.width[table] > 0
        }

    def _expect_combinations(self, tables: set[int]) -> None:
        """Set the hits of new tables' access predicates by the statistics of their combinations."""
        if self._statistics is not None and tables:
            access = self._state.access
            probability = joint_probabilities(self._statistics, self.vocabulary, self._state)
            known = (probability >= 0.0) & np.isin(access.table, list(tables))
            access.hits[known] = probability[known] * self._state.totals[ClusterTotal.EVENTS]

    def _move_all(self) -> None:
        """Redistribute every access predicate that there is now."""
        top = hash_index.top_entry(self._state.access.entries)
        cursor = np.zeros(4, dtype=np.int64)
        for entry in range(FALLBACK + 1, top):
            while self._state.access.members[entry] > 0 and not cursor[Cursor.DONE]:
                members = int(self._state.access.members[entry])
                self._state = arrays.with_room(self._state, min(_STEP, members), 1, self._widest)
                redistribute(self._state, entry, _STEP, cursor)
                cursor[Cursor.NO_ROOM] = 0  # there is room again the next time
            cursor[:] = 0
