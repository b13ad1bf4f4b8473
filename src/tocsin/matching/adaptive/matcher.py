"""The adaptive matcher: each conjunction has the access path that the fewest events reach."""

from __future__ import annotations

from concurrent.futures import Future
from itertools import islice, pairwise
from typing import Any, Final, Self

import numpy as np
from msgspec import Struct

from tocsin.matching.adaptive import state as arrays
from tocsin.matching.adaptive._kernels.adaptation import draw, gather_suspects, scale_weights
from tocsin.matching.adaptive._kernels.clusters import pack
from tocsin.matching.adaptive._kernels.dense import heat
from tocsin.matching.adaptive._kernels.matching import match
from tocsin.matching.adaptive._kernels.placement import forget, keep, recall, settle, withdraw
from tocsin.matching.adaptive.dividing import FEW_AT_ONCE, MOST_AT_ONCE, Sizes, divide, worth_dividing
from tocsin.matching.adaptive.expected_events import ExpectedEvents, release
from tocsin.matching.adaptive.planning import plan
from tocsin.matching.adaptive.plans import conjunction_plans, costs, path_figures, selective_attributes
from tocsin.matching.adaptive.state import (
    LEVELS,
    Access,
    DenseCount,
    Large,
    State,
    Stored,
    Top,
    Total,
    new_state,
)
from tocsin.matching.adaptive.threads import Found, FurtherThreads, Matching, joined, wait_for
from tocsin.matching.base import MAINTAINED, ids_of
from tocsin.matching.batches import EventBatch, IdArray
from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Keys, Op
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.le_subscribe.tables import new_sample
from tocsin.matching.plans import FilterCosts, FilterPlan
from tocsin.matching.registry import register
from tocsin.matching.saved import MatcherParts
from tocsin.matching.statistics import Statistics
from tocsin.matching.stored_matcher import StoredMatcher, check_sizes
from tocsin.model.errors import MatcherError
from tocsin.structures import blocks, hash_index
from tocsin.structures.addresses import Addressed
from tocsin.structures.array_types import Int32s

_LOW_HALF: Final = 0xFFFFFFFF
_PACKED_AFTER: Final = 32  # all conjunctions are at most so many times those that were just added
_LOOSE: Final = 0.8  # of the memory is needed, below which it is packed
_LEAST: Final = 1_024  # words that clusters grow by
_SLOTS: Final = 256  # there are few, once most attributes have come
_SAMPLE: Final = 1_024  # conjunctions that a plan is made for,
_GAPS: Final = 64  # drawn of so many times as many numbers at most: few may be in use after removals
_HALF_LIFE: Final = 20_000  # events after which an event counts for half
_HEAVY: Final = 2.0**60
_ALONE: Final = 0.05  # of the events are taken to come alone at least
_EFFORT: Final = 0.004  # conjunctions that are reviewed for each that is checked,
_LEAST_REVIEWED: Final = 0.25  # besides, for each event,
_MOST_EFFORT: Final = 1.0  # times more where many move
_FRUITFUL: Final = 0.15  # share of reviewed conjunctions that move, from which on more are reviewed
_LEAST_EFFORT: Final = 1.0 / 64
_MOSTLY: Final = (
    0.25  # share of the cost that hot clusters have, from which on all conjunctions are examined after a plan
)
_HEATED: Final = 8_192  # events in which hot clusters are looked for once
_LOOKED_AT: Final = 256  # clusters that may be divided, at a time
_ROUNDS: Final = (
    2  # of planning and moving, when all is planned at once: moving shows what further tables are worth
)
_DIVIDED: Final = 16  # times, likewise
_STEP: Final = 4_096  # conjunctions that are reviewed at once
_LIKELY: Final = 0.25  # share of conjunctions that a sweep is taken to move before it has begun
_WORTH: Final = (
    0.02  # conjunctions that are examined after a plan for each check of an event, where many move,
)
_LEAST_WORTH: Final = 0.002  # and where few do


class Thresholds(Struct, frozen=True):
    """When a matcher begins to plan, and to evaluate clusters for many events at once."""

    counted: int = 8  # of so many events one is counted: a power of two
    planned: int = 2_048  # conjunctions for which tables are planned before more are added, and whenever they are half as many again
    events: int = 512  # between two plans, at first
    drawn: int = 128  # conjunctions that a plan needs
    checks: float = 16.0  # of an event that are worth a plan
    together: int = 64  # events of a batch that are evaluated together
    part: int = arrays.CHUNK  # events of a batch that are worth a thread,
    gathered: int = 16_384  # and matches of it whose ids are
    words: int = 32  # of a cluster that is
    often: float = 1.0 / 256  # of the events reach it at least,
    hits: float = 4.0  # and so many have
    packed: int = 1 << 16  # words from which on clusters are moved together
    large: int = 512  # words of a cluster that has its first checks next to each other
    sizes: Sizes = Sizes()  # of clusters that are divided into sections, and of these


DEFAULT: Final = Thresholds()
EAGER: Final = Thresholds(
    counted=1,
    planned=64,
    events=1,
    drawn=1,
    checks=0.0,
    together=1,
    part=2,
    gathered=2,
    words=1,
    often=0.0,
    packed=16,
    large=16,
    sizes=Sizes(checks=4, saved=0.0, section=2, few=1, share=100.0),
)
"""Thresholds at which everything is done at the first opportunity."""


@register("adaptive")
class Adaptive(StoredMatcher):
    """Keeps each conjunction under the access path that the fewest events are expected to reach.

    `statistics` tell how many events to expect on a path before there are any. A batch of more than a thousand events, about, is
    matched by up to `threads` threads, a part each.
    """

    def __init__(
        self,
        *,
        vocabulary: Vocabulary | None = None,
        thresholds: Thresholds = DEFAULT,
        statistics: Statistics | None = None,
        threads: int = 1,
    ) -> None:
        super().__init__(vocabulary)
        self._thresholds = thresholds
        self._state: State = new_state()
        self._state.tops[Top.LARGE] = thresholds.large
        self._state.tops[Top.UNCOUNTED] = thresholds.counted - 1
        self._state.dense.used[DenseCount.LEAST] = thresholds.together
        self._addressed = Addressed[State](arrays.AdaptiveStateAddress)
        self._matching = Matching(self._addressed)
        self.threads = threads
        self._scratch = np.zeros(64, dtype=np.int64)  # room for the codes of one conjunction
        self._planned_for = thresholds.planned  # conjunctions at which there is a plan for all of them
        self._swept = 1 << 62  # the next conjunction to be examined since the last plan
        self._since = 0  # events since the last plan
        self._until_plan = thresholds.events
        self._checks_before = 0.0
        self._counted_before = 0.0
        self._plans = 0
        self._effort = _MOST_EFFORT  # how much is reviewed, in proportion to what is checked
        self._owed = 0.0  # conjunctions to be reviewed
        self._cost = 0.0  # of an event, in checks, when that was last counted
        self._to_sweep = 0.0  # conjunctions to be examined
        self._swept_well = 0.0  # share of the conjunctions examined since a plan that moved
        self._since_heat = 0  # events since hot clusters were looked for,
        self._until_heat = 0  # and after which they will be
        self._offset = 0  # in the cluster that is reviewed
        self._moved = 0
        # Clusters that it does not pay to divide: how many conjunctions they had, after how many events
        self._undivided: dict[int, tuple[int, float]] = {}
        if statistics is not None:
            self.use_statistics(statistics)

    @property
    def threads(self) -> int:
        """Return how many threads match the parts of a batch; this is not saved."""
        return 1 + len(self._further)

    @threads.setter
    def threads(self, count: int) -> None:
        if count < 1:
            raise MatcherError(f"`threads` is how many threads match a batch: 1 or more, and not {count}")
        self._further = FurtherThreads(count - 1)

    # adding and removing

    def _make_room(self, expressions: Expressions) -> None:
        widest = check_sizes(expressions, arrays.SIZE_MASK, "`adaptive`")
        self._state.tops[Top.WIDEST] = max(widest, int(self._state.tops[Top.WIDEST]))
        self._make_scratch()
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        store = conjunction_store.with_room(self._state.store, len(expressions.numbers))
        self._state = self._state._replace(store=store)

    def _make_scratch(self) -> None:
        """Make room for the codes of the widest conjunction, and for what is computed of them."""
        widest = int(self._state.tops[Top.WIDEST])
        if len(self._scratch) < 4 * widest + 4:
            self._scratch = np.zeros(8 * widest, dtype=np.int64)

    def _keep(self, ids: IdArray, expressions: Expressions) -> None:
        keep(self._store, ids, expressions)

    def _forget(self, expressions: Expressions) -> None:
        forget(self._store, expressions)
        self._release(expressions)

    def _place(self, expressions: Expressions) -> None:
        expected, new = self._expected_events(), np.empty(0, dtype=np.int64)
        if expected is not None:
            self._state, new = expected.prepare(self._state, expressions)
        try:
            self._place_by_counts(expressions)
        finally:
            release(self._state, new)

    def _place_by_counts(self, expressions: Expressions) -> None:
        """Put expressions under their best paths, by what is counted; plan first if they are many."""
        self._make_list_room(expressions)
        held, count = int(self._store.counters[StoreCounter.LIVE]), len(expressions.numbers)
        if held >= self._planned_for:
            # A few first, so that tables are there for the many.
            step = max(count // _SAMPLE, 1)
            self._settle(expressions, step)
            self._plan_for_all(held - count, expressions.numbers[::step], held)
        self._settle(expressions, 1)
        if self._swept < int(self._store.counters[StoreCounter.TOP]):
            self._sweep(16 * count + 64)
        if held <= _PACKED_AFTER * count:
            self._pack()

    def _pack(self) -> None:
        """Move clusters together where blocks that they have outgrown take too much memory."""
        state, top = self._state, int(self._state.words.top[0])
        words = state.access.keys[: hash_index.top_entry(state.access), Access.PLACE] & (arrays.LARGE_BIT - 1)
        rows = state.large.rows[: state.large.counters[1]]
        needed = int(blocks.block_sizes(words).sum())
        checks = int(blocks.block_sizes(rows[rows[:, Large.ENTRY] >= 0, Large.COUNT]).sum())
        if top > self._thresholds.packed and needed < _LOOSE * top:
            packed = arrays.with_new_memory(state, needed, checks)
            pack(state, packed.words.rows, packed.large.checks.rows)
            self._state = packed

    def _plan_for_all(self, before: int, placed: Keys, held: int) -> None:
        """Plan for a sample of all conjunctions: of those from before, and of those that are `placed` of the ones being added."""
        self._planned_for = held + held // 2
        drawn = self._draw()
        more = placed[:: max(len(placed) // max(_SAMPLE - len(drawn), 1), 1)].astype(np.int32)
        drawn = np.concatenate([drawn, more])
        self._state, made = plan(
            self._state,
            drawn,
            held / len(drawn),
            (before + len(placed)) / held,
            self._scratch,
            expected=self._expected_events(),
        )
        self._swept = 0 if made else self._swept

    def _sweep(self, budget: int) -> None:
        """Examine up to so many conjunctions since the last plan, and move those that have better paths now."""
        end = min(self._swept + budget, int(self._store.counters[StoreCounter.TOP]))
        if self._swept < end:
            placed = self._store.rows[self._swept : end, Stored.PATH] >= 0
            moved = self._move(np.flatnonzero(placed) + self._swept) / (end - self._swept)
            self._swept_well += (moved - self._swept_well) * min((end - self._swept) / _STEP, 1.0)
            self._swept = end

    def _move(self, numbers: Keys) -> int:
        """Move those of these conjunctions that have a better access path; return how many."""
        none = np.zeros(1, dtype=np.int64)
        moved = self._settle(Expressions(numbers, none, none, none[:0], none[:0], none[:0]), 1)
        self._moved += moved
        return moved

    def _settle(self, expressions: Expressions, step: int) -> int:
        """Put every so many of the conjunctions under their best access paths; return how many were put."""
        done, total = 0, 0
        while True:
            # A few conjunctions have room most often: the kernel tells, for less than making sure.
            done, count = settle(self._addressed.address(self._state), expressions, done, step, self._scratch)
            total += count
            if done >= len(expressions.numbers):
                return total
            self._make_place_room(expressions, done)

    def _make_list_room(self, expressions: Expressions) -> None:
        ops = expressions.tags >> FIELD_BITS
        codes = expressions.lows[(ops == Op.IN) | (ops == Op.NOT_IN)]
        if len(codes):
            members = 2 * len(expressions.keys) + int(np.diff(expressions.starts).max()) + 2
            self._state = arrays.with_lists(self._state, int(codes.max()) + 1, members)

    def _make_place_room(self, expressions: Expressions, done: int) -> None:
        """Make room for some more conjunctions: for all, but for what few of them may need."""
        left, size = len(expressions.numbers) - done, len(self._scratch) // 4
        predicates = (
            len(expressions.tags) - int(expressions.offsets[done]) if len(expressions.tags) else size * left
        )
        members = int(self._state.tops[Top.NEEDED_MEMBERS])
        most = min(predicates, 1 << 14) + 2 * size + len(expressions.keys) + members
        left = min(left, 1 << 14)
        state = arrays.with_codes(self._state, 2 * most + 8)
        state = arrays.with_slots(state, 2 * (min(predicates, _SLOTS) + 2 * size + members) + 8)
        state = arrays.with_access(state, left + 1)
        state = arrays.with_lists(state, 0, members)
        words = max(int(state.tops[Top.NEEDED]), _LEAST, 2 * (most + 3 * left))
        state = arrays.with_postings(state, max(int(state.tops[Top.NEEDED_POSTINGS]), _LEAST))
        checks = max(int(state.tops[Top.NEEDED_CHECKS]), 64 + left)
        state = arrays.with_first_checks(state, checks, left // (self._thresholds.large // 16) + 2)
        state.tops[[Top.NEEDED, Top.NEEDED_MEMBERS, Top.NEEDED_POSTINGS, Top.NEEDED_CHECKS]] = 0
        self._state = arrays.with_words(state, words)

    def _withdraw(self, expressions: Expressions) -> None:
        done, numbers = 0, expressions.numbers
        while (done := withdraw(self._addressed.address(self._state), numbers, done, self._scratch)) < len(
            numbers
        ):
            state = self._state
            words = max(int(state.words.top[0]) // 8 + _LEAST, int(state.tops[Top.NEEDED]))
            state.tops[Top.NEEDED] = 0
            self._state = arrays.with_words(state, words)

    def _recall(self, numbers: Keys, begin: int, into: Expressions) -> int:
        return recall(self._addressed.address(self._state), numbers, begin, into, self._scratch)

    # statistics of events

    def use_statistics(self, statistics: Statistics, *, weight: float | None = None) -> None:
        """Count events with these statistics as if they had just been matched: `weight` of them, if it is given.

        Else as many as the statistics have, up to the number after which a count weighs half. They weigh less and less
        as events are matched. Predicates that are added later start with their probability by the statistics, too.
        """
        with self._lock:
            self._finish_pending()
            self._statistics = statistics
            number = min(statistics.events, _HALF_LIFE) if weight is None else weight
            events = number / self._thresholds.counted * float(self._state.totals[Total.WEIGHT])
            ExpectedEvents(statistics, self.vocabulary).count_all(self._state, events)
            held = int(self._store.counters[StoreCounter.LIVE])
            if held >= self._thresholds.planned:
                self._plan_for_all(held, np.empty(0, dtype=np.int64), held)

    def _expected_events(self) -> ExpectedEvents | None:
        return None if self._statistics is None else ExpectedEvents(self._statistics, self.vocabulary)

    # matching

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the conjunctions that each event satisfies, and where each event's begin.

        A number above `NEEDS_RESIDUAL` is a conjunction whose residual predicates are still to be evaluated.
        """
        count = len(events.offsets) - 1
        self._finish_pending()
        self._prepare(int(np.diff(events.offsets).max(initial=0)))
        state = self._state
        if count >= self._thresholds.together and (
            (state.tops[Top.SUSPECTS] > 0 and self._since_heat >= self._until_heat)
            or state.dense.used[DenseCount.FAULT] != 0
        ):
            limits, self._state = self._thresholds, arrays.with_dense(state)
            while heat(self._state, limits.words, limits.often, limits.hits) > 0:
                self._state = arrays.with_more_columns(self._state)
            self._since_heat, self._until_heat = 0, min(2 * self._until_heat + 1, _HEATED)
        self._since_heat += count
        bounds = self._bounds_of_parts(count)
        if len(bounds) == 2:
            self._state, found = self._matching.match(self._state, events)
            return found
        parts = [events._replace(offsets=events.offsets[begin : end + 1]) for begin, end in pairwise(bounds)]
        return joined(self._match_parts(parts))

    def _bounds_of_parts(self, count: int) -> list[int]:
        """Return where the part of each thread begins, and the end of all: a part has a whole chunk of events, or more."""
        size = self._thresholds.part
        chunks = max((count + size // 2) // size, 1)
        threads = min(self.threads, chunks)
        return [*(chunks * i // threads * size for i in range(threads)), count]

    def _match_parts(self, parts: list[EncodedEvents]) -> list[Found]:
        """Return the matches of each part; the first is matched by the calling thread."""
        begun: list[Future[Found]] = []
        try:
            self._further.start(self._state, parts[1:], begun)
            self._state, first = self._matching.match(self._state, parts[0])
        finally:
            self._further.end(self._state, begun)
        return [first, *(one.result() for one in begun)]

    def _ids_of(self, found: Keys, offsets: Keys) -> tuple[Keys, Keys]:
        bounds = self._bounds_of_parts(len(offsets) - 1)
        if len(bounds) == 2 or len(found) < self._thresholds.gathered:
            return super()._ids_of(found, offsets)
        parts = [offsets[begin : end + 1] for begin, end in pairwise(bounds)]
        begun = self._further.start_gathering(self._store, found, parts[1:])
        try:
            first = ids_of(self._store, found, parts[0])
        finally:
            wait_for(begun)
        return joined([first, *(one.result() for one in begun)])

    def _prepare(self, pairs: int) -> None:
        """Make room for events of up to so many pairs, and for all attributes there are by now."""
        state, attributes = self._state, len(self.vocabulary.names.values)
        if FIELDS * attributes > len(state.slots.of):  # another matcher may have added some
            state = arrays.with_attributes(state, attributes)
        wanted = 4 * pairs + min(pairs, int(state.tops[Top.GRIDS])) * 4 * LEVELS + 4
        if len(state.room.touched) < wanted:
            state = state._replace(room=arrays.new_room(2 * wanted))
        self._state = state

    def _match_event(self, event: Any, pairs: int) -> int:
        if self._moving is not None or self._removing is not None:
            self._finish_pending()
        self._prepare(pairs)
        known = self._addressed
        address = known.current if known.state is self._state else known.address(self._state)
        return match(address, event, 0, 1)

    def _wanted_room(self) -> int:
        return int(self._state.tops[Top.NEEDED])

    def _make_state_room(self) -> None:
        """Make room for what the last event reaches."""
        self._state = arrays.with_twice_the_room(self._state)

    # adaptation

    def _maintain(self, events: int) -> None:
        """Plan again when enough was drawn, and review the clusters that were noted; both in proportion to the events."""
        state = self._state
        state.totals[Total.WEIGHT] *= 2.0 ** (events / _HALF_LIFE)
        if state.totals[Total.WEIGHT] > _HEAVY:
            scale_weights(state, 1.0 / float(state.totals[Total.WEIGHT]))
        self._count_alone(events)
        self._since += events
        checks = float(state.totals[Total.CHECKS]) - self._checks_before
        counted = float(state.totals[Total.COUNTED]) - self._counted_before
        per_event = checks / max(counted, 1.0)
        is_known = state.tops[Top.DRAWN] >= self._thresholds.drawn or state.dense.used[DenseCount.HOT] > 0
        if self._since >= self._until_plan and is_known and self._divide_some(events):
            # What conjunctions of these clusters cost is not known before some events have come.
            self._since = 0
            self._checks_before += checks
            self._counted_before += counted
            state.tops[Top.DRAWN] = 0
        elif self._since >= self._until_plan and is_known:
            hot, scale = self._draw_hot()
            together = self._cost_of(hot) * scale
            self._cost = per_event + together
            if self._cost > self._thresholds.checks:
                self._plan(per_event, together, hot)
            self._checks_before += checks
            self._counted_before += counted
            self._since = 0
            self._until_plan = min(2 * self._until_plan, 128 * self._thresholds.events)
            self._state.tops[Top.DRAWN] = 0
        self._owed += events * self._effort * (_LEAST_REVIEWED + per_event * _EFFORT)
        if self._owed >= 16:
            self._review(int(self._owed), events)
            self._owed = 0.0
        self._to_sweep += events * self._cost * (_LEAST_WORTH + _WORTH * self._swept_well)
        if self._to_sweep >= 16:
            self._sweep(min(int(self._to_sweep), _STEP * max(events // 64, 1)))
            self._to_sweep = 0.0

    def _count_alone(self, events: int) -> None:
        """Keep the share of events that come in small batches; some always may."""
        alone, share = float(events < self._thresholds.together), float(self._state.totals[Total.ALONE])
        share += (alone - share) * min(events / _HALF_LIFE, 1.0)
        self._state.totals[Total.ALONE] = max(share, _ALONE)

    def _cost_of(self, numbers: Int32s) -> float:
        """Return what conjunctions cost an event, in checks."""
        demand = np.zeros(int(self._state.tops[Top.SLOTS]) + 1)
        sample = new_sample(len(numbers) + 1)
        return draw(self._state, numbers, 1.0, 1.0, sample, demand, self._scratch)

    def _draw(self) -> Int32s:
        """Return about `_SAMPLE` of the conjunctions that are placed, at equal distances; that takes the same time for any number of them."""
        counters = self._store.counters
        top, live = int(counters[StoreCounter.TOP]), max(int(counters[StoreCounter.LIVE]), 1)
        tried = min(_SAMPLE * min(-(-top // live), _GAPS), top)
        numbers = np.asarray(np.arange(tried) * top // max(tried, 1), dtype=np.int32)
        return np.asarray(numbers[self._store.rows[numbers, Stored.PATH] >= 0])

    def _draw_hot(self) -> tuple[Int32s, float]:
        """Return the conjunctions of hot clusters among some that are drawn of all, and how many each stands for."""
        if not self._state.dense.used[DenseCount.HOT]:
            return np.empty(0, dtype=np.int32), 1.0
        drawn = self._draw()
        places = self._state.access.keys[self._store.rows[drawn, Stored.PATH], Access.PLACE]
        held = int(self._store.counters[StoreCounter.LIVE])
        return drawn[places & arrays.HOT_BIT > 0], held / max(len(drawn), 1)

    def _plan(self, alone: float, together: float, hot: Int32s) -> None:
        """Plan for what an event is checked against, by itself and together with others, each as often as it costs something."""
        state = self._state
        drawn = state.review.drawn[: min(int(state.tops[Top.DRAWN]), arrays.DRAWN)]
        share = together / (alone + together)
        drawn, hot = (
            drawn[: int(arrays.DRAWN * (1.0 - share)) + 1],
            hot[:: max(int(len(hot) / (share * _SAMPLE + 1)), 1)],
        )
        sample = np.concatenate([drawn, hot])
        if not len(sample):
            return
        scale = -(alone + together) / len(sample)
        self._state, made = plan(state, sample, scale, 1.0, self._scratch, expected=self._expected_events())
        self._plans += 1
        if made:
            self._effort = _MOST_EFFORT
            if share > _MOSTLY:
                self._swept, self._swept_well = 0, _LIKELY

    def _review(self, budget: int, events: int) -> None:
        """Examine up to so many conjunctions of the clusters that were noted, and move those that have better paths.

        Where few have, less is examined from then on.
        """
        self._divide_some(events)
        numbers = np.empty(min(budget, 8 * events, _STEP), dtype=np.int64)
        examined, self._offset = gather_suspects(self._state, self._offset, numbers)
        count = self._move(numbers[:examined])
        if examined >= 16:
            more = count > _FRUITFUL * examined
            self._effort = (
                min(2.0 * self._effort, _MOST_EFFORT) if more else max(0.7 * self._effort, _LEAST_EFFORT)
            )

    def _divide_some(self, events: int) -> bool:
        """Divide the clusters where that saves most, if it saves enough, more of them where there were more events; return whether one was."""
        if not self._state.large.counters[1]:
            return False
        most = MOST_AT_ONCE if events > MAINTAINED else FEW_AT_ONCE
        left, some = max(events // MAINTAINED, 1) * most, False
        found = worth_dividing(self._state, self._thresholds.sizes)
        for entry, size, behind in found[: min(events, _LOOKED_AT)]:
            if left <= 0:
                break
            not_divided, (count, counted) = behind, self._undivided.get(entry, (0, 0.0))
            is_whole = size <= 2 * count and self._state.totals[Total.COUNTED] < 4.0 * counted
            while not is_whole and left > 0:
                divided, count = divide(self._state, entry, self._thresholds.sizes, most)
                left, not_divided = left - count - _LEAST, not_divided - count
                is_whole = divided is None or not_divided <= 0
                if divided is None:
                    self._undivided[entry] = size, float(self._state.totals[Total.COUNTED])
                else:
                    self._state, some = divided, True
        return some

    def observe(self, events: EventBatch) -> None:
        """Match events only to count them, and every one of them, without giving them more weight than those that come otherwise."""
        with self._lock:
            uncounted = int(self._state.tops[Top.UNCOUNTED])
            self._state.tops[Top.UNCOUNTED] = 0
            self._state.totals[Total.WEIGHT] /= uncounted + 1
            try:
                self.match(events)
            finally:
                self._state.tops[Top.UNCOUNTED] = uncounted
                self._state.totals[Total.WEIGHT] *= uncounted + 1

    def maintain(self) -> None:
        """Plan for all conjunctions with the present statistics of events, and move all that have better access paths."""
        with self._lock:
            self._finish_pending()
            held = int(self._store.counters[StoreCounter.LIVE])
            for _ in range(_ROUNDS if held else 0):
                self._plan_for_all(held, np.empty(0, dtype=np.int64), held)
                self._swept = 0
                self._sweep(int(self._store.counters[StoreCounter.TOP]))
            for _ in range(_DIVIDED if held else 0):
                if not self._divide_some(_STEP):
                    break

    def restore(self, parts: MatcherParts) -> None:
        """Restore a matcher from its parts; what was to be reviewed is forgotten."""
        with self._lock:
            super().restore(parts)
            self._state.tops[Top.SUSPECTS] = self._state.tops[Top.DRAWN] = 0
            held = int(self._store.counters[StoreCounter.LIVE])
            self._planned_for = max(
                self._planned_for, held + held // 2
            )  # the tables that are there were made for these
            self._make_scratch()
            self.threads = self.threads  # with arrays of their own beside the new ones

    @classmethod
    def _eager(cls) -> Self:
        return cls(thresholds=EAGER)

    def _use(self, events: list[dict[str, object]]) -> None:
        for _ in range(4):
            super()._use(events * 8)
        self._state.totals[Total.WEIGHT] = 2 * _HEAVY
        super()._use(events)

    # plans and figures

    def explain_plan(self, id: int) -> FilterPlan:
        """Return how events reach the conjunctions of a subscription; raise `MatcherError` if it is not stored."""
        with self._lock:
            self._finish_pending()
            return self._plans_of([id])[0]

    def explain_costs(self, top: int = 10) -> FilterCosts:
        """Return how many checks all subscriptions cost an event, and the plans of so many that cost most."""
        with self._lock:
            self._finish_pending()
            ids, found, by_kind = costs(self._state)
            order = np.argsort(-found, kind="stable")
            plans = self._plans_of(ids[order[: max(top, 0)]].tolist())
            return FilterCosts(plans, found[order], by_kind, int(self._state.totals[Total.COUNTED]))

    def _plans_of(self, ids: list[int]) -> tuple[FilterPlan, ...]:
        counted = int(self._state.totals[Total.COUNTED])
        is_placed = self._store.rows[:, Stored.PATH] >= 0
        numbers = [[number for number in self._numbers_of(id_) if is_placed[number]] for id_ in ids]
        plans = iter(conjunction_plans(self._state, self.vocabulary, [n for each in numbers for n in each]))
        selective = selective_attributes(self._state, self.vocabulary)
        return tuple(
            FilterPlan(id_, tuple(islice(plans, len(each))), counted, selective)
            for id_, each in zip(ids, numbers, strict=True)
        )

    def _details(self) -> dict[str, int | float]:
        """Return the number of access paths and of conjunctions by kind of path, and the work per event."""
        state = self._state
        events = max(float(state.totals[Total.COUNTED]), 1.0)
        is_large = np.flatnonzero(state.large.rows[: state.large.counters[1], Large.ENTRY] >= 0)
        return {
            "distinct predicates": hash_index.live_entries(state.predicates.entries),
            "access paths": hash_index.live_entries(state.access),
            "tables": int(np.count_nonzero(state.tables.width)),
            "grids": int(state.tops[Top.GRIDS]),
            "large clusters": len(is_large),
            "divided clusters": int(np.count_nonzero(state.large.rows[is_large, Large.SECTIONS])),
            "hot clusters": int(state.dense.used[DenseCount.HOT]),
            "access paths per event": float(state.totals[Total.VISITS]) / events,
            "probes per event": float(state.totals[Total.PROBES]) / events,
            "checks per event": float(state.totals[Total.CHECKS]) / events,
            "plans": self._plans,
            "conjunctions moved": self._moved,
            **path_figures(state, self.vocabulary),
        }
