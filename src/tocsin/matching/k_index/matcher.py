"""k-index as a matcher (Whang et al. 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tocsin.language import Cnf, parse_condition, to_cnf
from tocsin.matching._kernels.id_chains import SIBLING
from tocsin.matching.batches import Clauses, ConjunctionBatch, EventBatch
from tocsin.matching.encoding.codes import FIELD_BITS, Keys, Op
from tocsin.matching.encoding.events import EncodedEvents, encode_events
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.matching import match
from tocsin.matching.k_index._kernels.ranking import Best, Given, rank
from tocsin.matching.k_index.postings_writer import PostingsWriter
from tocsin.matching.k_index.state import (
    CANDIDATES,
    ENTRIES,
    FORM,
    LISTS,
    LIVE_FORMS,
    LIVE_MEMBERS,
    LOOKED,
    MOST_CLAUSES,
    MOST_SIZE,
    PREDICATES,
    SEEN,
    STEPS,
    TOP_MEMBER,
)
from tocsin.matching.matcher import Explanation, MatcherStats, PredicateTruth
from tocsin.matching.ranking import (
    NEGATIONS,
    EventWeights,
    Rankings,
    best,
    check_event_weights,
    check_top,
    event_weight,
    score,
)
from tocsin.matching.registry import register
from tocsin.model.errors import MatcherError
from tocsin.model.event import Event
from tocsin.model.values import Value
from tocsin.structures import hash_index
from tocsin.structures.hash_index import HashIndex

_SLICE: Final = 1 << 16  # forms that are handled at a time
_DRAFT: Final = 1 << 16  # entries that are drafted at a time, unless one form has more
_ABSENCE: Final = ("fails", "satisfies")
_NO_WEIGHTS: Final = np.empty(0, dtype=np.float64)


@register("k-index")
class KIndex(PostingsWriter):
    """Keeps forms in posting lists by attribute and value, and goes through the lists of an event's values at once.

    A form is a conjunction, or clauses of which each must hold. Ranges of whole numbers are expanded into values, if
    those that an attribute is compared with are at most `expansion` apart; others are keys of their own. A negation
    over an absent attribute `"fails"`, as the language says, or, as the paper has it, `absence="satisfies"` it.
    """

    saved_options: ClassVar[tuple[str, ...]] = ("expansion", "absence")

    def __init__(
        self, *, expansion: int = 4096, absence: str = "fails", vocabulary: Vocabulary | None = None
    ) -> None:
        if expansion < 0:
            raise MatcherError(f"`expansion` is how many values a range may have, 0 or more, not {expansion}")
        if absence not in _ABSENCE:
            raise MatcherError(f"`absence` is {' or '.join(map(repr, _ABSENCE))}, not {absence!r}")
        super().__init__(expansion=expansion, absence=absence == "satisfies", vocabulary=vocabulary)
        self.absence = absence

    def _maintain(self, events: int) -> None:
        """Do nothing: there is nothing to be done later."""

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the members whose form each event satisfies, and where each event's begin.

        One above `NEEDS_RESIDUAL` has predicates left that only Python can tell.
        """
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(max(1024, 4 * count), dtype=np.int64)
        state = self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._state = arrays.with_sizes(
            state, int(state.draft.tops[MOST_SIZE]), int(state.draft.tops[MOST_CLAUSES])
        )
        done = 0
        while done < count:
            reached, lists = match(self._state, events, done, found, offsets)
            if reached < count and lists:
                self._state = arrays.with_lists(self._state)
            elif reached < count:
                found = _longer(found, int(offsets[reached]))
            done = reached
        return found[: offsets[-1]], offsets

    def _prepare(self) -> None:
        """Make room for attributes that another matcher has brought, and for forms of every size."""
        state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        tops = state.draft.tops
        self._state = arrays.with_sizes(state, int(tops[MOST_SIZE]), int(tops[MOST_CLAUSES]))

    def rank(self, events: EventBatch, top: int, weights: EventWeights) -> Rankings:
        """Return, per event, the best `top` of the subscriptions that it satisfies; `weights` are the events'."""
        check_top(top)
        check_event_weights(weights, len(events))
        with self._lock:
            encoded = encode_events(events, self.vocabulary)
            self._prepare()
            found, members, offsets = self._rank(encoded, self._given(weights, len(events)), top)
            self._verify(events, members, offsets)
            rows = []
            for place in range(len(events)):
                count = 0 if events.is_refused(place) else int(found.counts[place])
                ranked = dict(
                    zip(found.ids[place, :count].tolist(), found.scores[place, :count].tolist(), strict=True)
                )
                for member in members[offsets[place] : offsets[place + 1]].tolist():
                    if member >= 0:
                        id_ = int(self._state.book.ids.keys[self._state.book.owner[member], 0])
                        told = self._worth(member, events.attributes(place), event_weight(weights, place))
                        ranked[id_] = max(ranked.get(id_, 0.0), told)
                rows.append(best(ranked.items(), top))
            return Rankings.of(rows)

    def _rank(self, events: EncodedEvents, given: Given, top: int) -> tuple[Best, Keys, Keys]:
        """Return the best of each event, and the members that Python has to tell about, as `match_encoded` does."""
        count = len(events.offsets) - 1
        most = min(top, max(hash_index.live_entries(self._state.book.ids), 1))
        found = Best(
            np.zeros((count, most), dtype=np.int64), np.zeros((count, most)), np.zeros(count, dtype=np.int64)
        )
        offsets = np.zeros(count + 1, dtype=np.int64)
        members = np.empty(1024, dtype=np.int64)
        done = 0
        while done < count:
            done, lists = rank(self._state, events, done, given, found, (members, offsets))
            if done < count and lists:
                self._state = arrays.with_lists(self._state)
            elif done < count:
                members = _longer(members, int(offsets[done]))
        return found, members[: offsets[-1]], offsets

    def _given(self, weights: EventWeights, count: int) -> Given:
        """Return events' weights as arrays; of attributes that no subscription names, none is needed."""
        codes = self.vocabulary.names.codes
        rows = [weights] * count if isinstance(weights, Mapping) else weights
        kept = [[(codes[name], weight) for name, weight in row.items() if name in codes] for row in rows]
        offsets = np.zeros(count + 1, dtype=np.int64)
        np.cumsum([len(row) for row in kept], out=offsets[1:])
        pairs = [pair for row in kept for pair in row]
        return Given(
            offsets,
            np.array([code for code, _ in pairs], dtype=np.int64),
            np.array([weight for _, weight in pairs], dtype=np.float64),
        )

    def _worth(self, member: int, attributes: Mapping[str, Value], weights: Mapping[str, float]) -> float:
        """Return what a member is worth of whose predicates Python had to tell some."""
        number = np.array([self._state.book.members[member, FORM]], dtype=np.int64)
        (forms,) = self._recalled(number)
        paths = map(self._path, forms.tags.tolist(), forms.lows.tolist())
        own = {path: weight for path, weight in zip(paths, forms.weights.tolist(), strict=True) if path}
        return score(Cnf(self._decode(member)), attributes, own, weights)

    def _residual_clauses(self, numbers: list[int]) -> dict[int, Clauses]:
        """Return, of members that are unsure, the clauses that have yet to be told."""
        return {number: self._decode(number, only_residual=True) for number in numbers}

    def _decode(self, member: int, *, only_residual: bool = False) -> Clauses:
        """Return the clauses of a member's form, in the order they were given."""
        number = self._state.book.members[member, FORM]
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
        return self._state.book.ids

    def _owner(self) -> NDArray[np.int32]:
        return self._state.book.owner

    def _expressions_of(self, entry: int) -> list[Clauses]:
        """Return the forms of a subscription, in the order they came."""
        chain = self._chain(int(self._state.book.first[entry]), self._state.book.members[:, SIBLING])
        return [self._decode(number) for number in chain]

    def stats(self) -> MatcherStats:
        """Return what is held and what that costs."""
        with self._lock:
            tops, totals, directory = self._state.book.tops, self._state.totals, self._state.directory
            seen = max(float(totals[SEEN]), 1.0)
            return MatcherStats(
                hash_index.live_entries(self._state.book.ids),
                int(tops[LIVE_MEMBERS]),
                int(tops[PREDICATES]),
                self._bytes(),
                {
                    "different forms": int(tops[LIVE_FORMS]),
                    "keys": hash_index.live_entries(directory.keys),
                    "lists": int(directory.posted.counts[LISTS]),
                    "entries": int(directory.tops[ENTRIES]),
                    "lists per event": float(totals[LOOKED]) / seen,
                    "skips per event": float(totals[STEPS]) / seen,
                    "candidates per event": float(totals[CANDIDATES]) / seen,
                },
            )

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not."""
        told = super().explain(event, id)
        if self.absence == "fails":
            return told
        conjunctions = tuple(tuple(map(self._with_absence, c)) for c in told.conjunctions)
        clauses = tuple(tuple(tuple(map(self._with_absence, c)) for c in form) for form in told.clauses)
        matched = any(all(t.truth for t in c) for c in conjunctions)
        matched = matched or any(all(any(t.truth for t in c) for c in form) for form in clauses)
        return Explanation(id, matched, conjunctions, clauses)

    def _with_absence(self, told: PredicateTruth) -> PredicateTruth:
        """Return a predicate's truth where an absent attribute satisfies a negation that is not left to Python."""
        if told.truth is not None or told.predicate.operator not in NEGATIONS:
            return told
        if self.vocabulary.encode(told.predicate).tag >> FIELD_BITS == Op.RESIDUAL:
            return told
        return PredicateTruth(told.predicate, told.value, True)

    def _vocabulary_use(self) -> tuple[Keys, Keys]:
        """Return the predicates of all forms, each as often as it is had."""
        members = np.flatnonzero(self._state.book.owner[: self._state.book.tops[TOP_MEMBER]] >= 0)
        numbers = self._state.book.members[members, FORM].astype(np.int64)
        none = np.empty(0, dtype=np.int64)
        held = [(none, none), *((forms.tags, forms.lows) for forms in self._recalled(numbers))]
        return np.concatenate([tags for tags, _ in held]), np.concatenate([lows for _, lows in held])

    @classmethod
    def warm_up(cls) -> None:
        """Compile what is not compiled yet, by using a small matcher of this kind in every way."""
        matcher = cls()
        texts = [
            "a = 1 and b > 2",
            "a in (1, 2) and c is present",
            "s like '%x_'",
            "true",
            "(a = 1 or c = 2) and b > 1",
        ]
        conditions = [parse_condition(text) for text in texts]
        matcher.add(ConjunctionBatch.of((i, to_cnf(one)) for i, one in enumerate(conditions)))
        matcher.match(EventBatch.of_dicts([{"a": 1, "b": 1, "c": 2, "d": 3, "s": "x"}]))
        matcher.remove(np.arange(len(texts)))


def _longer(found: Keys, used: int) -> Keys:
    """Return an array four times as long that begins with what is used of this one."""
    more = np.empty(4 * len(found), dtype=np.int64)
    more[:used] = found[:used]
    return more
