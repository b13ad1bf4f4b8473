"""The dynamic matcher: tables are made and dropped as subscriptions and events change (Le Subscribe, 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

import numpy as np

from tocsin.matching.batches import EventBatch, IdArray
from tocsin.matching.conjunction_store.state import StoreCounter
from tocsin.matching.encoding.codes import Keys
from tocsin.matching.encoding.conjunctions import EncodedConjunctions
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.le_subscribe import state as arrays
from tocsin.matching.le_subscribe._kernels.adaptation import (
    Cursor,
    examine_reached,
    redistribute,
    sample_suspects,
    sweep,
)
from tocsin.matching.le_subscribe.matcher import ClusteredMatcher
from tocsin.matching.le_subscribe.state import CALM, FALLBACK, SUSPECT, ClusterTotal
from tocsin.matching.le_subscribe.tables import (
    EAGER,
    Costs,
    add_table,
    checked_width,
    new_sample,
    read_costs,
    schemas_for,
    subsets,
)
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.matching.statistics import Statistics
from tocsin.structures import hash_index
from tocsin.structures.array_types import Int32s

_SAMPLE: Final = 4096
_AT_ONCE: Final = 4  # tables that one round may make
_OWED: Final = 32  # changes, or eight times as many events, after which something is done
_STEP: Final = 2048  # conjunctions that one step of maintenance examines


@register("dynamic")
class Dynamic(ClusteredMatcher):
    """Keeps each conjunction under the access predicate that the fewest events satisfy, and makes the tables for it.

    An access predicate whose benefit margin (how often it is probed, times its conjunctions) is beyond tolerance is
    suspect. When the suspects could save a table's worth, tables are chosen for a sample of their conjunctions,
    and the conjunctions are redistributed. A table that costs more than it saves is emptied and dropped. All
    of it happens a bounded step at a time, after each change and each match; `adaptive` turns it off and on.

    `max_attributes` limits how many attributes a table may have; `tolerance` (the paper's BM_max) is how many checks
    per event one access predicate may cause and stay unexamined.
    """

    saved_options = ("max_attributes", "adaptive", "tolerance", "costs")

    def __init__(
        self,
        *,
        vocabulary: Vocabulary | None = None,
        max_attributes: int = 4,
        adaptive: bool = True,
        tolerance: float = 2.0,
        costs: Costs | Mapping[str, float] | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        super().__init__(vocabulary=vocabulary, statistics=statistics)
        self.max_attributes = checked_width(max_attributes)
        self.adaptive = adaptive
        self.costs = read_costs(costs)
        self.tolerance = tolerance
        self._state.totals[ClusterTotal.TOLERANCE] = tolerance
        self._queue: list[int] = []  # access predicates to be redistributed
        # Access predicates beyond tolerance, some calm again
        self._repair: Int32s = np.zeros(0, dtype=np.int32)
        self._cursor = np.zeros(4, dtype=np.int64)
        self._closing: int | None = None  # the table that is being emptied
        self._closing_at = 0
        self._swept = np.zeros(64, dtype=np.float64)
        self._sweep_at = 0
        self._owed = 0.0
        self.rounds = 0
        self.tables_made = 0
        self.tables_deleted = 0

    def maintain(self, budget: int | None = None) -> bool:
        """Do maintenance for up to `budget` conjunctions, all there is if None; return whether any is left."""
        with self._lock:
            left = np.inf if budget is None else budget
            while left > 0:
                if self._queue:
                    left -= self._redistribute(int(min(left, _STEP)))
                elif self._closing is not None:
                    left -= self._empty(int(min(left, _STEP)))
                elif self._is_worth_a_round():
                    self._start_round()
                    left -= _SAMPLE // 8
                else:
                    return False
            return True

    def sweep(self) -> None:
        """Examine every access predicate once by the present statistics, and do the maintenance that follows."""
        with self._lock:
            self._sweep_at = self._sweep(0, 1 << 62)
            self.maintain()

    def restore(self, parts: MatcherParts) -> None:
        """Restore a matcher from its parts; interrupted maintenance restarts."""
        with self._lock:
            super().restore(parts)
            state = self._state
            state.access.status[:] = CALM
            state.access.settled[:] = 0.0
            state.tables.width[:] = np.abs(state.tables.width)
            state.totals[ClusterTotal.SUSPECTS] = state.totals[ClusterTotal.PENDING] = 0.0
            state.totals[ClusterTotal.TOLERANCE] = self.tolerance

    @classmethod
    def _eager(cls) -> Self:
        return cls(costs=EAGER, tolerance=0.05)

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        with self._lock:
            super().add_encoded(batch)
            self._after(len(batch.ids))

    def _place(self, batch: EncodedConjunctions, slots: Keys, begin: int, end: int) -> int:
        # A few at first, so that the tables that they ask for are there for the many.
        held = int(self._state.store.counters[StoreCounter.LIVE])
        done = super()._place(batch, slots, begin, min(end, begin + max(1024, held // 4)))
        if self.adaptive and done < len(batch.ids):
            self.maintain(8 * (done - begin))
        return done

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        with self._lock:
            super().remove(ids)
            self._after(len(ids))

    def _use(self, events: list[dict[str, object]]) -> None:
        super()._use(events)
        self._owed = _OWED  # as after many events
        self.match(EventBatch.of_dicts(events))

    def _maintain(self, events: int) -> None:
        if self.adaptive and events and self._owed + events / 8 >= _OWED:
            examine_reached(self._state)  # `scratch` still lists what the last event reached
        self._after(events / 8)

    def _after(self, work: float) -> None:
        """Spend on maintenance in proportion to the work that was done, once there is enough of it."""
        if not self.adaptive:
            return
        self._owed += work
        if self._owed < _OWED:
            return
        work, self._owed = self._owed, 0.0
        self._sweep_at = self._sweep(self._sweep_at, int(work) // 4 + 1)
        self.maintain(8 * int(work) + 64)

    def _is_worth_a_round(self) -> bool:
        return bool(self._state.totals[ClusterTotal.PENDING] >= self.costs.create * self.costs.of(2))

    def _start_round(self) -> None:
        """Choose tables for the conjunctions of suspect and settled access predicates, and queue these for redistribution.

        One access predicate alone never saves the cost of a table. So settled ones count again with each new suspect:
        together they are the paper's repair set.
        """
        state = self._state
        status, members = state.access.status, state.access.members
        suspects = state.suspects[: int(state.totals[ClusterTotal.SUSPECTS])].copy()
        state.totals[ClusterTotal.SUSPECTS] = state.totals[ClusterTotal.PENDING] = 0.0
        repair = np.unique(np.concatenate([self._repair, suspects]))
        self._repair = repair = repair[(status[repair] != CALM) & (members[repair] > 0)]
        suspects = repair[status[repair] == SUSPECT]
        if not len(suspects):
            return
        self.rounds += 1
        self._queue = suspects.tolist()
        if self.max_attributes > 1 and self._make_tables(repair):
            self._state.access.status[repair] = SUSPECT
            self._queue = repair.tolist()

    def _make_tables(self, entries: Int32s) -> int:
        """Make the tables that pay off for the conjunctions of these access predicates; return how many."""
        # The more equalities a conjunction has, the more schemas it adds: fewer are drawn then.
        size = _SAMPLE * 25 // max(25, subsets(self._widest, self.max_attributes))
        sample = new_sample(size)
        sample_suspects(self._state, entries, max(size // len(entries), 1), sample)
        schemas = schemas_for(
            self._state,
            sample,
            self.max_attributes,
            self.costs,
            most=_AT_ONCE,
            correlations=self._correlations(sample),
        )
        for schema, correlation in schemas.items():
            self._state = add_table(self._state, schema, correlation)
        self.tables_made += len(schemas)
        return len(schemas)

    def _redistribute(self, budget: int) -> int:
        """Examine up to `budget` conjunctions of the queued access predicates; return how many."""
        entry = self._queue[-1]
        if self._state.access.status[entry] != SUSPECT or self._state.access.members[entry] <= 0:
            done = 1
            self._cursor[Cursor.DONE] = 1
        else:
            done = self._move_from(entry, budget)
        if self._cursor[Cursor.DONE]:
            self._queue.pop()
            self._cursor[:] = 0
        return max(done, 1)

    def _move_from(self, entry: int, budget: int) -> int:
        self._state = arrays.with_room(self._state, min(budget, _STEP), 1, self._widest)
        done = redistribute(self._state, entry, budget, self._cursor)
        self._cursor[Cursor.NO_ROOM] = 0  # there is room again the next time
        return done

    def _empty(self, budget: int) -> int:
        """Move conjunctions out of the table that is closing; return how many were examined."""
        state, table = self._state, self._closing
        top = hash_index.top_entry(state.access.entries)
        window = state.access.table[self._closing_at : min(top, self._closing_at + 65_536)]
        members = state.access.members[self._closing_at : self._closing_at + len(window)]
        held = np.flatnonzero((window == table) & (members > 0))
        if not len(held):
            self._closing_at += len(window)
            self._cursor[:] = 0
            if self._closing_at >= top:
                self._end_closing()
            return len(window) // 16 + 1
        self._closing_at += int(held[0])
        done = self._move_from(self._closing_at, budget)
        if self._cursor[Cursor.DONE]:
            self._cursor[:] = 0
            self._closing_at += 1
        return max(done, 1)

    def _end_closing(self) -> None:
        if self._closing is not None and self._state.tables.members[self._closing] == 0:
            self._state.tables.width[self._closing] = 0
            self.tables_deleted += 1
            self._closing = None
        self._closing_at = FALLBACK + 1

    def _sweep(self, start: int, count: int) -> int:
        """Examine some access predicates; at the end of a full turn, close the table that saves too little."""
        tables = self._state.tables
        if len(self._swept) < len(tables.width):
            self._swept = np.concatenate([self._swept, np.zeros(len(tables.width) - len(self._swept))])
        if start == 0:
            self._swept[:] = 0.0
        following = sweep(self._state, start, count, self._swept)
        if following == 0:
            used = int(tables.used[0])
            poor = [
                (self._swept[table] / self._cost(table), table)
                for table in range(used)
                if tables.width[table] > 0
            ]
            least = min(poor, default=(np.inf, -1))
            if least[0] < self.costs.delete and self._closing is None:
                self._closing, self._closing_at = least[1], FALLBACK + 1
                tables.width[least[1]] *= -1
        return following

    def _cost(self, table: int) -> float:
        """Return the cost of a table, with as many keys as its fields have constants, or it has conjunctions."""
        tables = self._state.tables
        width = int(tables.width[table])
        distinct = self._state.fields.equalities[tables.fields[table, :width]].astype(np.float64)
        return self.costs.of(width, min(float(distinct.prod()), float(tables.members[table])))

    def _details(self) -> dict[str, int | float]:
        return {
            **super()._details(),
            "rounds of maintenance": self.rounds,
            "tables made": self.tables_made,
            "tables deleted": self.tables_deleted,
        }
