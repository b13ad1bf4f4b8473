"""OpIndex as a matcher (Zhang, Chan and Tan 2014)."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from tocsin.matching.base import longer
from tocsin.matching.batches import IdArray
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELDS, Keys
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.opindex import state as arrays
from tocsin.matching.opindex._kernels.matching import match, match_event
from tocsin.matching.opindex._kernels.pivots import KNOWN, choose_pivots, decay, forget_events, review
from tocsin.matching.opindex._kernels.placement import forget, keep, place, withdraw
from tocsin.matching.opindex.state import Pivot, Placement, State, StoredColumn, Top, Total
from tocsin.matching.registry import register
from tocsin.matching.statistics import Statistics
from tocsin.matching.stored_matcher import StoredMatcher, attributes_of, check_sizes, with_lists
from tocsin.model.errors import MatcherError
from tocsin.structures.addresses import Addressed

_HALF_LIFE: Final = 50_000  # events after which a count weighs half
_ONE_EVENT: Final = 0.5 ** (1 / _HALF_LIFE)
_MOST_ROOM: Final = 1 << 20  # matches that room is made for before they are found
_PAUSE: Final = 2_000  # events between two reviews of all expressions
_PACE: Final = 20  # expressions reviewed per event,
_LEAST: Final = 64  # but at least so many per call
_SEGMENTS: Final = tuple(1 << log for log in range(9))


@register("opindex")
class OpIndex(StoredMatcher):
    """Keeps each expression under its pivot, its least frequent attribute, and counts the predicates an event satisfies.

    `statistics` say how often events have each attribute; without them, and until events were seen, an attribute is taken
    to be as frequent as among the subscriptions. A predicate list has up to `segments` segments, each with a signature
    unless `signatures` is false.
    """

    takes_clauses = True
    saved_options: ClassVar[tuple[str, ...]] = ("segments", "signatures")

    def __init__(
        self,
        *,
        segments: int = 32,
        signatures: bool = True,
        vocabulary: Vocabulary | None = None,
        statistics: Statistics | None = None,
    ) -> None:
        if segments not in _SEGMENTS:
            raise MatcherError(f"a list has 1, 2, 4, … or 256 segments, not {segments!r}")
        super().__init__(vocabulary)
        self.segments = segments
        self.signatures = signatures
        self._state: State = arrays.new_state(segments, signatures=signatures)
        self._addressed = Addressed[State](arrays.OpIndexStateAddress)
        self._reviewed = 0  # the next expression to review
        self._pause = int(KNOWN)  # events until the next review
        if statistics is not None:
            self.use_statistics(statistics)

    # adding and removing

    def _make_room(self, expressions: Expressions) -> None:
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        check_sizes(expressions, arrays.MOST_PREDICATES, "OpIndex counts")
        self._state = arrays.with_expressions(self._state, expressions)
        if self._statistics is not None:
            used = attributes_of(expressions)
            self._expect(used[self._state.attributes.seen[used] == 0], self._statistics)

    def _keep(self, ids: IdArray, expressions: Expressions) -> None:
        keep(self._state, ids, expressions)

    def _forget(self, expressions: Expressions) -> None:
        forget(self._state, expressions)
        self._release(expressions)

    def _release(self, expressions: Expressions) -> None:
        super()._release(expressions)
        names = self.vocabulary.names
        for attribute in attributes_of(expressions).tolist():
            if not names.is_known(attribute):
                self._state.attributes.seen[attribute] = 0.0

    def _place(self, expressions: Expressions) -> None:
        """Place expressions, sorted by pivot, and grow the arrays whenever they are full."""
        done, count = 0, len(expressions.numbers)
        clauses, pivots = np.empty((2, count), dtype=np.int64)
        choose_pivots(self._state, expressions, clauses, pivots)
        order = np.argsort(pivots, kind="stable")
        while done < count:
            i = order[done]
            bounds = expressions.bounds[expressions.offsets[i] : expressions.offsets[i + 1] + 1]
            lists = expressions.which[bounds[0] : bounds[-1]]
            members = np.diff(expressions.starts)[lists[lists >= 0]]
            self._state = arrays.with_placements(
                self._state,
                expressions=count - done,
                entries=2 * len(lists) + 1 + int(members.sum()),
                gates=len(lists) + len(bounds),
            )
            done = place(self._state, expressions, clauses, order, done)

    def _withdraw(self, expressions: Expressions) -> None:
        withdraw(self._state, with_lists(self.vocabulary, expressions))

    # adaptation

    def use_statistics(self, statistics: Statistics, *, weight: float | None = None) -> None:
        """Count `weight` events like those of the statistics, as if they had just been matched.

        Without a weight, their number in the statistics counts, up to the number after which a count weighs half.
        Attributes that are added later are as frequent as the statistics say, too.
        """
        with self._lock:
            self._statistics = statistics
            number = min(statistics.events, _HALF_LIFE) if weight is None else weight
            self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
            events = number * self._state.totals[Total.WEIGHT]
            self._state.totals[Total.EVENTS] += events
            self._expect(np.flatnonzero(self._state.attributes.uses), statistics, events)
            self._pause = 0

    def _expect(self, attributes: Keys, statistics: Statistics, events: float | None = None) -> None:
        """Count events, all of them by default, towards attributes in the proportions of the statistics."""
        count = self._state.totals[Total.EVENTS] if events is None else events
        for attribute in attributes.tolist():
            path = self.vocabulary.names.value(attribute)
            self._state.attributes.seen[attribute] += count * statistics.presence(path)

    def _maintain(self, events: int) -> None:
        """Review a few expressions per event, and move those whose pivot has become too frequent to another one."""
        self._pause -= events
        state = self._state
        if self._pause > 0 or state.totals[Total.EVENTS] < KNOWN * state.totals[Total.WEIGHT]:
            return
        moves = np.empty(max(events, 1), dtype=np.int64)
        end = self._reviewed + max(_PACE * events, _LEAST)
        self._reviewed, found = review(state, self._reviewed, end, moves)
        self._relocate(self._placeable(moves[:found]))
        self._state.totals[Total.MOVES] += found
        if self._reviewed >= self._store.counters[StoreCounter.TOP]:
            self._reviewed, self._pause = 0, _PAUSE

    # matching

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the expressions that each event satisfies, and where each event's begin.

        A number above `NEEDS_RESIDUAL` is an expression whose residual predicates are still to be evaluated.
        """
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        # As much room as the last events needed: a kernel that has too little is called twice.
        room = max(1024, 4 * count, min(self._state.tops.item(Top.NEEDED_MATCHES), _MOST_ROOM))
        found = np.empty(room, dtype=np.int64)
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        pairs = len(events.fields) if count == 1 else int(np.diff(events.offsets).max(initial=0))
        self._state = arrays.with_pairs(self._state, 3 * pairs + 1)
        self._finish_pending()
        done = 0
        while done < count:
            if self._state.tops[Top.EPOCH] + 2 * count > arrays.MOST_EVENTS:
                forget_events(self._state)
                self._state.tops[Top.EPOCH] = 0
            done = match(self._state, events, done, found, offsets)
            if done < count:
                found = longer(found, int(offsets[done]), int(self._state.tops[Top.NEEDED_MATCHES]))
        decay(self._state.totals, self._state.attributes.seen, 0.5 ** (count / _HALF_LIFE))
        return found[: offsets[-1]], offsets

    def _match_event(self, event: Any, pairs: int) -> int:
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._state = arrays.with_pairs(self._state, 3 * pairs + 1)
        self._finish_pending()
        return match_event(self._addressed.address(self._state), event, _ONE_EVENT)

    def _wanted_room(self) -> int:
        return int(self._state.tops[Top.NEEDED_MATCHES])

    # figures

    def pivots(self, id: int) -> list[tuple[str | None, ...]]:
        """Return, for each expression of a subscription in the order they came, the attributes that are its pivots.

        A CNF expression may have several. None is no attribute: every event visits the expression.
        """
        with self._lock:
            return [self._pivot_names(number) for number in self._numbers_of(id)]

    def _pivot_names(self, number: int) -> tuple[str | None, ...]:
        """Return the attributes of an expression's pivots; None is the pivot that every event visits."""
        state, names = self._state, []
        placement = int(self._store.rows[number, StoredColumn.PLACEMENT])
        while placement >= 0:
            field = int(state.pivots[state.placements[placement, Placement.PIVOT], Pivot.FIELD])
            names.append(None if field == arrays.ALWAYS else self.vocabulary.names.value(field // FIELDS))
            placement = int(state.placements[placement, Placement.NEXT])
        return tuple(dict.fromkeys(names))

    def _details(self) -> dict[str, int | float]:
        """Return the sizes of the index and its work per event."""
        state = self._state
        members = state.pivots[: state.tops[Top.PIVOTS], Pivot.MEMBERS]
        seen = max(float(state.totals[Total.SEEN]), 1.0)
        return {
            "pivots": int(np.count_nonzero(members)),
            "placements": int(members.sum()),
            "entries": int(state.tops[Top.ENTRIES]),
            "pivots per event": float(state.totals[Total.VISITS]) / seen,
            "segments searched per event": float(state.totals[Total.SEARCHES]) / seen,
            "predicates satisfied per event": float(state.totals[Total.TOUCHES]) / seen,
            "pivots changed": int(state.totals[Total.MOVES]),
        }

    def _use(self, events: list[dict[str, object]]) -> None:
        self.use_statistics(Statistics.of(events), weight=2 * KNOWN)
        super()._use(events)
        self._state.tops[Top.EPOCH] = arrays.MOST_EVENTS
        super()._use(events)


@register("opindex-bs")
class OpIndexBs(OpIndex):
    """OpIndex without segments and signatures, for comparison: each list is searched as a whole (the paper's OpIndex-BS)."""

    saved_options = ()

    def __init__(self, *, vocabulary: Vocabulary | None = None, statistics: Statistics | None = None) -> None:
        super().__init__(segments=1, signatures=False, vocabulary=vocabulary, statistics=statistics)
