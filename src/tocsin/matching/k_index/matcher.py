"""k-index as a matcher (Whang et al. 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from tocsin.language import Cnf
from tocsin.matching import ranking
from tocsin.matching.base import longer
from tocsin.matching.batches import ConjunctionBatch, EventBatch, IdArray
from tocsin.matching.conjunction_store._kernels.numbers import unlink
from tocsin.matching.conjunction_store._kernels.records import recall
from tocsin.matching.conjunction_store.state import Expressions, blank_expressions, first_expressions
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Keys, Op
from tocsin.matching.encoding.events import EncodedEvents, encode_events
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.expressions import drop_members, free_expressions, intern
from tocsin.matching.k_index._kernels.matching import match, match_event
from tocsin.matching.k_index._kernels.ranking import Best, Given, rank
from tocsin.matching.k_index.postings_writer import PostingsWriter
from tocsin.matching.k_index.state import DirectoryTop, DraftTop, Expression, Member, State, Total
from tocsin.matching.matcher import Explanation, PredicateTruth
from tocsin.matching.ranking import EventWeights, Rankings, Weight
from tocsin.matching.registry import register
from tocsin.matching.stored_matcher import StoredMatcher, check_sizes, with_lists
from tocsin.model.conditions import NEGATIONS
from tocsin.model.errors import MatcherError
from tocsin.model.event import Event
from tocsin.model.terms import Attribute
from tocsin.model.values import Value
from tocsin.structures import hash_index
from tocsin.structures.addresses import Addressed
from tocsin.structures.array_types import Int32s

_ABSENCE: Final = ("fails", "satisfies")


@register("k-index")
class KIndex(StoredMatcher):
    """Keeps expressions in posting lists by attribute and value, and merges the lists of an event's values.

    Ranges of whole numbers are expanded into values if the constants that an attribute is compared with are at most
    `expansion` apart; other ranges are keys of their own. A negation over an absent attribute `"fails"`, as the language
    says, or with `absence="satisfies"` it holds, as in the paper.
    """

    takes_clauses = True
    saved_options: ClassVar[tuple[str, ...]] = ("expansion", "absence")

    def __init__(
        self, *, expansion: int = 4096, absence: str = "fails", vocabulary: Vocabulary | None = None
    ) -> None:
        if expansion < 0:
            raise MatcherError(f"`expansion` is how many values a range may have, 0 or more, not {expansion}")
        if absence not in _ABSENCE:
            raise MatcherError(f"`absence` is {' or '.join(map(repr, _ABSENCE))}, not {absence!r}")
        super().__init__(vocabulary)
        self.expansion = expansion
        self.absence = absence
        self._postings = PostingsWriter(arrays.new_state(expansion, absence=absence == "satisfies"))
        self._addressed = Addressed[State](arrays.KIndexStateAddress)
        self._weights: Mapping[int, Weight] = {}  # of the batch that is being added

    @property
    def _state(self) -> State:
        return self._postings.state

    @_state.setter
    def _state(self, state: State) -> None:
        self._postings.state = state

    # adding and removing

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions and CNFs with their weights; any one of the expressions that carry an id satisfies it."""
        for weight in subscriptions.weights.values():
            ranking.check_weight(weight)
        with self._lock:
            self._weights = subscriptions.weights
            try:
                super().add(subscriptions)
            finally:
                self._weights = {}

    def _add(self, ids: IdArray, expressions: Expressions) -> None:
        """Intern expressions, post new ones, and hold the words of all; if that fails, undo it."""
        if not len(ids):
            return
        self._finish_pending()
        batch = self._weighed(ids, expressions)
        members = np.full(len(ids), -1, dtype=np.int64)
        self.vocabulary.retain(batch.tags, batch.lows)
        try:
            self._make_room(batch)
            self._postings.extend_domains(batch)
            intern(self._state.table, self._store, ids, batch, members)
            self._place(batch)
        except BaseException:
            if members[0] >= 0:
                self._withdraw(batch)
                unlink(self._store, members)
                free_expressions(self._state.table, self._drop_members(members))
            self._release(batch)
            raise

    def _weighed(self, ids: IdArray, batch: Expressions) -> Expressions:
        """Return expressions with the weights of their predicates, if any is other than 1."""
        if not self._weights:
            return batch
        self._state = arrays.with_limits(self._state)
        weights = np.ones(len(batch.tags), dtype=np.float64)
        ends = batch.bounds[batch.offsets].tolist()
        for i, id_ in enumerate(ids.tolist()):
            weight = self._weights.get(id_, 1.0)
            if isinstance(weight, Mapping):
                for q in range(ends[i], ends[i + 1]):
                    path = self._path(int(batch.tags[q]), int(batch.lows[q]))
                    weights[q] = 1.0 if path is None else weight.get(path, 1.0)
            else:
                weights[ends[i] : ends[i + 1]] = weight
        return batch._replace(weights=weights)

    def _path(self, tag: int, low: int) -> str | None:
        """Return the attribute that is the subject of a predicate, if its subject is one."""
        if tag >> FIELD_BITS != Op.RESIDUAL:
            return self.vocabulary.names.value((tag & FIELD_MASK) // FIELDS)
        subject = self.vocabulary.predicate(low).subject
        return subject.path if type(subject) is Attribute else None

    def _make_room(self, expressions: Expressions) -> None:
        most = check_sizes(expressions, arrays.MOST_PREDICATES, "k-index takes")
        state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._state = arrays.with_expressions(arrays.with_sizes(state, most, most), expressions)

    def _place(self, expressions: Expressions) -> None:
        self._postings.place(expressions)

    def _withdraw(self, expressions: Expressions) -> None:
        self._postings.withdraw(with_lists(self.vocabulary, expressions))

    def _take_out(self, numbers: Keys) -> None:
        """Remove members, and the expressions that no member has any more."""
        # Words are released last: expressions are read from them while they are withdrawn.
        words = [(batch.tags, batch.lows) for batch in self._recalled(numbers)]  # once per member
        gone = self._drop_members(numbers)
        self._withdraw(self._stored(gone))
        free_expressions(self._state.table, gone)
        for tags, lows in words:
            self.vocabulary.release(tags, lows)

    def _drop_members(self, members: Keys) -> Keys:
        """Free members, and return the expressions that have none any more."""
        gone = np.empty(len(members), dtype=np.int64)
        return gone[: drop_members(self._state.table, self._store, members, gone)]

    # recall

    def _records(self, numbers: Keys) -> tuple[Keys, Keys, Keys]:
        return self._table_records(self._store.rows[numbers, Member.EXPRESSION])

    def _table_records(self, numbers: Keys | Int32s) -> tuple[Keys, Keys, Keys]:
        """Return the records of expressions by their numbers in the table."""
        records = self._state.table.rows[numbers, : Expression.LENGTH + 1]
        starts, counts = np.ascontiguousarray(records.T, dtype=np.int64)
        return self._state.table.records.rows, starts, counts

    def _stored(self, numbers: Keys) -> Expressions:
        """Return expressions by their numbers in the table, with weights."""
        rows, starts, counts = self._table_records(numbers)
        into = blank_expressions(len(numbers), int(np.abs(counts).sum()), weighted=True)
        recall(rows, starts, counts, numbers, into)
        return first_expressions(into, len(numbers))

    # matching

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the members whose expression each event satisfies, and where each event's begin.

        A number above `NEEDS_RESIDUAL` is a member whose residual predicates are still to be evaluated.
        """
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(max(1024, 4 * count), dtype=np.int64)
        self._prepare()
        done = 0
        while done < count:
            done, lists_full = match(self._state, events, done, found, offsets)
            if done < count and lists_full:
                self._state = arrays.with_lists(self._state)
            elif done < count:
                found = longer(found, int(offsets[done]))
        return found[: offsets[-1]], offsets

    def _match_event(self, event: Any, pairs: int) -> int:  # noqa: ARG002 - room for lists is found to be missing
        self._prepare()
        return match_event(self._addressed.address(self._state), event)

    def _make_state_room(self) -> None:
        self._state = arrays.with_lists(self._state)

    def _prepare(self) -> None:
        """Make room for attributes that another matcher has added, and for expressions of every size."""
        self._finish_pending()
        state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        tops = state.draft.tops
        self._state = arrays.with_sizes(
            state, int(tops[DraftTop.MOST_SIZE]), int(tops[DraftTop.MOST_CLAUSES])
        )

    def rank(self, events: EventBatch, top: int, weights: EventWeights) -> Rankings:
        """Return, per event, the best `top` of the subscriptions that it satisfies, with the `weights` of the events."""
        ranking.check_top(top)
        ranking.check_event_weights(weights, len(events))
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
                        id_ = int(self._store.ids.keys[self._store.owner[member], 0])
                        own = self._score(
                            member, events.attributes(place), ranking.event_weight(weights, place)
                        )
                        ranked[id_] = max(ranked.get(id_, 0.0), own)
                rows.append(ranking.best(ranked.items(), top))
            return Rankings.of(rows)

    def _rank(self, events: EncodedEvents, given: Given, top: int) -> tuple[Best, Keys, Keys]:
        """Return the best of each event, and all members with residual predicates as `match_encoded` returns them."""
        count = len(events.offsets) - 1
        most = min(top, max(hash_index.live_entries(self._store.ids), 1))
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
                members = longer(members, int(offsets[done]))
        return found, members[: offsets[-1]], offsets

    def _given(self, weights: EventWeights, count: int) -> Given:
        """Return the weights of events as arrays, without attributes that no subscription names."""
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

    def _score(self, member: int, attributes: Mapping[str, Value], weights: Mapping[str, float]) -> float:
        """Score a member that needed residual predicates."""
        batch = self._stored(self._store.rows[member : member + 1, Member.EXPRESSION].astype(np.int64))
        paths = map(self._path, batch.tags.tolist(), batch.lows.tolist())
        own = {path: weight for path, weight in zip(paths, batch.weights.tolist(), strict=True) if path}
        (clauses,) = self._decode([member])
        return ranking.score(Cnf(clauses), attributes, own, weights)

    # figures

    def _details(self) -> dict[str, int | float]:
        """Return the sizes of the index and its work per event."""
        totals, directory = self._state.totals, self._state.directory
        seen = max(float(totals[Total.SEEN]), 1.0)
        return {
            "distinct expressions": int(self._state.table.tops[arrays.TableTop.LIVE_EXPRESSIONS]),
            "keys": hash_index.live_entries(directory.keys),
            "lists": int(directory.posted.counts[arrays.PostedCount.LISTS]),
            "entries": int(directory.tops[DirectoryTop.ENTRIES]),
            "lists per event": float(totals[Total.LOOKED]) / seen,
            "skips per event": float(totals[Total.STEPS]) / seen,
            "candidates per event": float(totals[Total.CANDIDATES]) / seen,
        }

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not."""
        found = super().explain(event, id)
        if self.absence == "fails":
            return found
        conjunctions = tuple(tuple(map(self._with_absence, c)) for c in found.conjunctions)
        clauses = tuple(tuple(tuple(map(self._with_absence, c)) for c in cnf) for cnf in found.clauses)
        matched = any(all(t.truth for t in c) for c in conjunctions)
        matched = matched or any(all(any(t.truth for t in c) for c in cnf) for cnf in clauses)
        return Explanation(id, matched, conjunctions, clauses)

    def _with_absence(self, tested: PredicateTruth) -> PredicateTruth:
        """Return a predicate's truth where an absent attribute satisfies a negation that is not residual."""
        if tested.truth is not None or tested.predicate.operator not in NEGATIONS:
            return tested
        if self.vocabulary.encode(tested.predicate).tag >> FIELD_BITS == Op.RESIDUAL:
            return tested
        return PredicateTruth(tested.predicate, tested.value, True)
