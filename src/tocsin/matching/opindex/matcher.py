"""OpIndex as a matcher (Zhang, Chan and Tan 2014)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tocsin.language import parse_condition, to_cnf
from tocsin.matching._kernels.id_chains import SIBLING, unlink
from tocsin.matching.batches import Clauses, ConjunctionBatch, EventBatch, IdArray
from tocsin.matching.cnf_matcher import CnfMatcher
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Keys, Op
from tocsin.matching.encoding.conjunctions import encode_lists
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.id_chains import Links, taken_from
from tocsin.matching.matcher import MatcherStats
from tocsin.matching.opindex import state as arrays
from tocsin.matching.opindex._kernels.matching import match
from tocsin.matching.opindex._kernels.pivots import decay, forget_events, review
from tocsin.matching.opindex._kernels.placement import KNOWN, choose_pivots, place, withdraw
from tocsin.matching.opindex._kernels.storing import leave, recall, store
from tocsin.matching.opindex.state import (
    ALWAYS,
    ENTRIES,
    EPOCH,
    EVENTS,
    EXTRA_NEXT,
    EXTRA_PIVOT,
    FIELD,
    LIVE_FORMS,
    MEMBERS,
    MORE,
    MOST_EVENTS,
    MOST_PREDICATES,
    MOVES,
    PIVOT,
    PREDICATES,
    ROOM,
    SEARCHES,
    SEEN,
    TOP_FORM,
    TOP_PIVOT,
    TOUCHES,
    VISITS,
    WEIGHT,
    Expressions,
    State,
    new_state,
)
from tocsin.matching.registry import register
from tocsin.matching.statistics import Statistics
from tocsin.model.errors import MatcherError
from tocsin.structures import hash_index
from tocsin.structures.hash_index import HashIndex

_FIELD: Final = (1 << FIELD_BITS) - 1
_SLICE: Final = 1 << 16  # forms that are handled at a time
_MEMORY: Final = 50_000  # events after which a count weighs half
_PAUSE: Final = 2_000  # events between two reviews of all forms
_PACE: Final = 20  # forms that are reviewed for each event
_LEAST: Final = 64  # or so many, for a call with few events
_SEGMENTS: Final = tuple(1 << log for log in range(9))


@register("opindex")
class OpIndex(CnfMatcher):
    """Keeps each form under its pivot, the attribute that events have least often, and counts what holds of it.

    A form is a conjunction, or clauses of which each must hold. `statistics` tell how often events have each
    attribute; without them, and until events were seen, it is taken to be as frequent as among the subscriptions.
    A predicate list has up to `segments` of them, each with a signature, unless there are to be no `signatures`.
    """

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
        self._state: State = new_state(segments, signatures=signatures)
        self._reviewed = 0  # the form that the review has come to
        self._pause = int(KNOWN)  # events until it begins anew
        self._moving: Expressions | None = None  # forms that are under way to another pivot
        self._leaving: Keys | None = None  # numbers of forms that are being removed, or -1
        if statistics is not None:
            self.use_statistics(statistics)

    # changes

    def _check(self, sizes: Keys) -> None:
        """Raise `MatcherError` if a form has more predicates than can be counted."""
        if len(sizes) and sizes.max() > MOST_PREDICATES:
            raise MatcherError(
                f"a subscription has {sizes.max():,} predicates, and OpIndex counts up to "
                f"{MOST_PREDICATES:,}; gather alternatives of one attribute with `in (…)`, or split it"
            )

    def _enter(self, ids: IdArray, forms: Expressions) -> None:
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._check(np.diff(forms.bounds[forms.offsets]))
        self._finish_pending()
        records = _records(forms)
        self._state = arrays.with_forms(self._state, len(ids), int((records + records // 2 + 1).sum()))
        if self._statistics is not None:
            known = _attributes(forms)
            self._expect(known[self._state.attributes.seen[known] == 0], self._statistics)
        try:
            store(self._state, ids, forms)
            self._place(forms)
        except BaseException:
            if forms.numbers[0] >= 0:  # they are stored
                withdraw(self._state, forms)
                unlink(*self._links(), self._state.owner, forms.numbers)
                leave(self._state, forms)
            raise

    def _leave(self, forms: Expressions) -> None:
        """Give up forms that are withdrawn, and their words."""
        leave(self._state, forms)
        self._release(forms)

    def _release(self, forms: Expressions) -> None:
        """Let go of the words of forms, and of what is known of attributes that no other speaks of."""
        super()._release(forms)
        names = self.vocabulary.names
        for attribute in _attributes(forms).tolist():
            if not names.is_known(attribute):
                self._state.attributes.seen[attribute] = 0.0

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        with self._lock:
            self._finish_pending()
            for _ in taken_from(ids, self._links, self._let_leave):
                self._finish_pending()

    def _let_leave(self, numbers: Keys) -> None:
        self._leaving = numbers

    def _links(self) -> Links:
        return self._state.ids, self._state.first, self._state.forms

    def _place(self, forms: Expressions) -> None:
        done, count = 0, len(forms.numbers)
        clauses, pivots = np.empty((2, count), dtype=np.int64)
        choose_pivots(self._state, forms, clauses, pivots)
        order = np.argsort(pivots, kind="stable")
        while done < count:
            i = order[done]
            bounds = forms.bounds[forms.offsets[i] : forms.offsets[i + 1] + 1]
            lists = forms.which[bounds[0] : bounds[-1]]
            members = np.diff(forms.starts)[lists[lists >= 0]]
            self._state = arrays.with_placements(
                self._state,
                forms=count - done,
                entries=2 * len(lists) + 1 + int(members.sum()),
                gates=len(lists) + len(bounds),
            )
            done = place(self._state, forms, clauses, order, done)

    def _forms(self, offsets: Keys, bounds: Keys, tags: Keys, lows: Keys, highs: Keys) -> Expressions:
        """Return forms with the members of their lists, and numbers that are to be given yet."""
        which, starts, fields, keys = encode_lists(self.vocabulary, tags, lows)
        pivots = tags & _FIELD
        if len(fields):
            same = np.logical_and.reduceat(
                fields == np.repeat(fields[starts[:-1]], np.diff(starts)), starts[:-1]
            )
            narrow = np.flatnonzero((tags >> FIELD_BITS == Op.IN) & (which >= 0) & same[which])
            pivots[narrow] = fields[starts[which[narrow]]]
        numbers = np.full(len(offsets) - 1, -1, dtype=np.int64)
        return Expressions(numbers, offsets, bounds, tags, lows, highs, pivots, which, starts, fields, keys)

    def _recalled(self, numbers: Keys) -> Iterator[Expressions]:
        """Return what forms say, a part of them at a time."""
        done, room = 0, max(64, 8 * min(len(numbers), _SLICE))
        none = np.empty(0, dtype=np.int64)
        while done < len(numbers):
            count = min(len(numbers) - done, _SLICE)
            numbers_, offsets = np.empty(count, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
            bounds, tags, lows, highs = np.empty((4, room + 1), dtype=np.int64)
            into = Expressions(
                numbers_, offsets, bounds, tags[1:], lows[1:], highs[1:], none, none, none, none, none
            )
            reached = recall(self._state, numbers, done, into)
            if reached == done:
                room *= 2
                continue
            offsets = offsets[: reached - done + 1]
            bounds = bounds[: offsets[-1] + 1]
            said = slice(int(bounds[-1]))
            forms = self._forms(offsets, bounds, into.tags[said], into.lows[said], into.highs[said])
            yield forms._replace(numbers=into.numbers[: reached - done])
            done = reached

    # what events are like

    def use_statistics(self, statistics: Statistics, *, weight: float | None = None) -> None:
        """Take it that events like those of the statistics have just come: `weight` of them, if it is given.

        Else as many as the statistics tell of, up to the number after which a count weighs half. Attributes that
        are added later are taken to be as frequent as the statistics say, too.
        """
        with self._lock:
            self._statistics = statistics
            number = min(statistics.events, _MEMORY) if weight is None else weight
            self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
            self._state.totals[EVENTS] += number * self._state.totals[WEIGHT]
            self._expect(
                np.flatnonzero(self._state.attributes.uses), statistics, number * self._state.totals[WEIGHT]
            )
            self._pause = 0

    def _expect(self, attributes: Keys, statistics: Statistics, events: float | None = None) -> None:
        """Count events, all that count if nothing is said, towards attributes, as many as the statistics say."""
        count = self._state.totals[EVENTS] if events is None else events
        for attribute in attributes.tolist():
            path = self.vocabulary.names.value(attribute)
            self._state.attributes.seen[attribute] += count * statistics.presence(path)

    def _maintain(self, events: int) -> None:
        """Give some of those forms another pivot whose own has become too frequent, a few for each event."""
        self._pause -= events
        if self._pause > 0 or self._state.totals[EVENTS] < KNOWN * self._state.totals[WEIGHT]:
            return
        moves = np.empty(max(events, 1), dtype=np.int64)
        end = self._reviewed + max(_PACE * events, _LEAST)
        self._reviewed, found = review(self._state, self._reviewed, end, moves)
        for forms in self._recalled(moves[:found]):
            self._moving = forms
            withdraw(self._state, forms)
            self._place(forms)
        self._moving = None
        self._state.totals[MOVES] += found
        if self._reviewed >= self._state.tops[TOP_FORM]:
            self._reviewed, self._pause = 0, _PAUSE

    def _finish_pending(self) -> None:
        """Place what an exception kept from being placed, and remove what it kept from being removed."""
        if self._moving is not None:
            withdraw(self._state, self._moving)
            self._place(self._moving)
            self._moving = None
        if self._leaving is not None:
            numbers = self._leaving[self._leaving >= 0]
            for forms in self._recalled(numbers[self._state.owner[numbers] >= 0]):
                withdraw(self._state, forms)
                self._leave(forms)
            self._leaving = None

    # questions

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the forms that each event satisfies, and where each event's begin.

        One above `NEEDS_RESIDUAL` has predicates left that only Python can tell.
        """
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(max(1024, 4 * count), dtype=np.int64)
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._state = arrays.with_pairs(self._state, 3 * int(np.diff(events.offsets).max(initial=0)) + 1)
        self._finish_pending()
        done = 0
        while done < count:
            if self._state.tops[EPOCH] + 2 * count > MOST_EVENTS:
                forget_events(self._state)
                self._state.tops[EPOCH] = 0
            reached = match(self._state, events, done, found, offsets)
            if reached < count:
                more = np.empty(max(2 * len(found), int(self._state.tops[ROOM])), dtype=np.int64)
                more[: offsets[reached]] = found[: offsets[reached]]
                found = more
            done = reached
        decay(self._state.totals, self._state.attributes.seen, 0.5 ** (count / _MEMORY))
        return found[: offsets[-1]], offsets

    def _residual_clauses(self, numbers: list[int]) -> dict[int, Clauses]:
        """Return, of forms that are unsure, the clauses that have yet to be told."""
        return {number: self._decode(number, only_residual=True) for number in numbers}

    def _decode(self, number: int, *, only_residual: bool = False) -> Clauses:
        """Return the clauses of a form, in the order they were given."""
        (forms,) = self._recalled(np.array([number], dtype=np.int64))
        bounds = forms.bounds.tolist()
        said = list(zip(forms.tags.tolist(), forms.lows.tolist(), forms.highs.tolist(), strict=True))
        clauses = [said[begin:end] for begin, end in pairwise(bounds)]
        return tuple(
            tuple(self.vocabulary.decode(*predicate) for predicate in clause)
            for clause in clauses
            if not only_residual or any(tag >> FIELD_BITS == Op.RESIDUAL for tag, _, _ in clause)
        )

    def _ids(self) -> HashIndex:
        return self._state.ids

    def _owner(self) -> NDArray[np.int32]:
        return self._state.owner

    def _expressions_of(self, entry: int) -> list[Clauses]:
        """Return the forms of a subscription, in the order they came."""
        chain = self._chain(int(self._state.first[entry]), self._state.forms[:, SIBLING])
        return [self._decode(number) for number in chain]

    def pivots(self, id: int) -> list[tuple[str | None, ...]]:
        """Return, for each form of a subscription in the order they came, the attributes that it is kept under.

        A clause form may be kept under several. None is no attribute: every event is asked.
        """
        with self._lock:
            entry = hash_index.find(self._state.ids, id, 0, 0)
            if entry < 0:
                raise MatcherError(f"no subscription has the id {id}")
            chain = self._chain(int(self._state.first[entry]), self._state.forms[:, SIBLING])
            return [self._placed(number) for number in chain]

    def _placed(self, number: int) -> tuple[str | None, ...]:
        """Return the attributes that a form is kept under."""
        state = self._state
        pivots, more = [int(state.forms[number, PIVOT])], int(state.forms[number, MORE])
        while more >= 0:
            pivots.append(int(state.extras[more, EXTRA_PIVOT]))
            more = int(state.extras[more, EXTRA_NEXT])
        fields = [int(state.pivots[pivot, FIELD]) for pivot in pivots]
        names = [
            None if field == ALWAYS else self.vocabulary.names.value(field // FIELDS) for field in fields
        ]
        return tuple(dict.fromkeys(names))

    def stats(self) -> MatcherStats:
        """Return what is held and what that costs."""
        with self._lock:
            state = self._state
            pivots = state.pivots[: state.tops[TOP_PIVOT], MEMBERS]
            seen = max(float(state.totals[SEEN]), 1.0)
            return MatcherStats(
                hash_index.live_entries(state.ids),
                int(state.tops[LIVE_FORMS]),
                int(state.tops[PREDICATES]),
                self._bytes(),
                {
                    "pivots": int(np.count_nonzero(pivots)),
                    "placements": int(pivots.sum()),
                    "entries": int(state.tops[ENTRIES]),
                    "pivots per event": float(state.totals[VISITS]) / seen,
                    "segments searched per event": float(state.totals[SEARCHES]) / seen,
                    "predicates satisfied per event": float(state.totals[TOUCHES]) / seen,
                    "pivots changed": int(state.totals[MOVES]),
                },
            )

    def _vocabulary_use(self) -> tuple[Keys, Keys]:
        """Return the predicates of all forms, each as often as it occurs."""
        self._finish_pending()
        numbers = np.flatnonzero(self._state.owner[: self._state.tops[TOP_FORM]] >= 0)
        none = np.empty(0, dtype=np.int64)
        held = [(none, none), *((forms.tags, forms.lows) for forms in self._recalled(numbers))]
        return np.concatenate([tags for tags, _ in held]), np.concatenate([lows for _, lows in held])

    @classmethod
    def warm_up(cls) -> None:
        """Compile what is not compiled yet, by using a small matcher of this kind in every way."""
        matcher = cls()
        texts = ["a = 1 and b > 2", "a in (1, 2) and c is present", "s like '%x_'", "true"]
        conditions = [parse_condition(text) for text in texts]
        matcher.add(ConjunctionBatch.of((i, to_cnf(one)) for i, one in enumerate(conditions)))
        events: list[dict[str, object]] = [{"a": 1, "b": 1, "c": 2, "d": 3, "s": "x"}]
        matcher.use_statistics(Statistics.of(events), weight=2 * KNOWN)
        matcher.match(EventBatch.of_dicts(events))
        matcher._state.tops[EPOCH] = MOST_EVENTS
        matcher.match(EventBatch.of_dicts(events))
        matcher.remove(np.arange(len(texts)))


@register("opindex-bs")
class OpIndexBs(OpIndex):
    """OpIndex without segments and signatures, to tell what they are worth: each list is searched as a whole."""

    saved_options = ()

    def __init__(self, *, vocabulary: Vocabulary | None = None, statistics: Statistics | None = None) -> None:
        super().__init__(segments=1, signatures=False, vocabulary=vocabulary, statistics=statistics)


def _attributes(forms: Expressions) -> Keys:
    """Return the attributes that forms speak of."""
    named = forms.tags[forms.tags >> FIELD_BITS != Op.RESIDUAL] & _FIELD
    return np.unique(named // FIELDS)


def _records(forms: Expressions) -> Keys:
    """Return how many records each form takes: one a predicate, one more for a range, and one a clause."""
    ops = forms.tags >> FIELD_BITS
    ranges = np.zeros(len(ops) + 1, dtype=np.int64)
    np.cumsum((ops == Op.BETWEEN) | (ops == Op.NOT_BETWEEN), out=ranges[1:])
    ends = forms.bounds[forms.offsets]
    predicates, clauses = np.diff(ends), np.diff(forms.offsets)
    marks = np.where(predicates == clauses, 0, clauses)
    return np.asarray(predicates + np.diff(ranges[ends]) + marks)
