"""The forms that k-index keeps: how they come and go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.id_chains import unlink
from tocsin.matching.batches import ConjunctionBatch, IdArray
from tocsin.matching.cnf_matcher import CnfMatcher
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Keys, Op
from tocsin.matching.encoding.conjunctions import encode_lists
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.id_chains import Links, taken_from
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.domains import draft_growth, survey
from tocsin.matching.k_index._kernels.entries import draft_forms
from tocsin.matching.k_index._kernels.placement import place_drafted, withdraw_drafted
from tocsin.matching.k_index._kernels.storing import drop_members, free_expressions, recall, store
from tocsin.matching.k_index.state import (
    DRAFTED,
    FORM,
    MOST_PREDICATES,
    NEEDED,
    RESUME,
    Expressions,
    Fields,
    State,
    new_state,
)
from tocsin.matching.ranking import Weight, check_weight
from tocsin.model.errors import MatcherError
from tocsin.model.terms import Attribute
from tocsin.structures.memory import available_mb

_SLICE: Final = 1 << 16  # forms that are handled at a time
_DRAFT: Final = 1 << 16  # entries that are drafted at a time, unless one form has more
_MOST_ENTRIES: Final = 3 << 29  # from which on an array that grows has places that 32 bits do not tell
_UNLIMITED: Final = 1 << 60  # values that a domain grows by at a time
_LARGE: Final = 1 << 26  # bytes from which on it is asked what memory is left
_NO_WEIGHTS: Final = np.empty(0, dtype=np.float64)


class PostingsWriter(CnfMatcher):
    """Keeps forms, each once however many subscriptions have it, and their entries in posting lists."""

    def __init__(self, *, expansion: int, absence: bool, vocabulary: Vocabulary | None) -> None:
        super().__init__(vocabulary)
        self.expansion = expansion
        self._state: State = new_state(expansion, absence=absence)
        self._weights: Mapping[int, Weight] = {}  # of the batch that is being added

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions and clause forms, with their weights; any one of those that carry an id satisfies it."""
        for weight in subscriptions.weights.values():
            check_weight(weight)
        with self._lock:
            self._weights = subscriptions.weights
            try:
                super().add(subscriptions)
            finally:
                self._weights = {}

    def _weighed(self, ids: IdArray, forms: Expressions) -> Expressions:
        """Return forms with the weights of their predicates, if any weighs other than 1."""
        if not self._weights:
            return forms
        self._state = arrays.with_limits(self._state)
        weights = np.ones(len(forms.tags), dtype=np.float64)
        ends = forms.bounds[forms.offsets].tolist()
        for i, id_ in enumerate(ids.tolist()):
            weight = self._weights.get(id_, 1.0)
            if isinstance(weight, Mapping):
                for q in range(ends[i], ends[i + 1]):
                    path = self._path(int(forms.tags[q]), int(forms.lows[q]))
                    weights[q] = 1.0 if path is None else weight.get(path, 1.0)
            else:
                weights[ends[i] : ends[i + 1]] = weight
        return forms._replace(weights=weights)

    def _path(self, tag: int, low: int) -> str | None:
        """Return the attribute that is the subject of a predicate, if its subject is one."""
        if tag >> FIELD_BITS != Op.RESIDUAL:
            return self.vocabulary.names.value((tag & ((1 << FIELD_BITS) - 1)) // FIELDS)
        subject = self.vocabulary.predicate(low).subject
        return subject.path if type(subject) is Attribute else None

    def _check(self, sizes: Keys) -> None:
        """Raise `MatcherError` if a form has more predicates than this matcher counts."""
        if len(sizes) and sizes.max() > MOST_PREDICATES:
            raise MatcherError(
                f"a subscription has {sizes.max():,} predicates, and k-index takes up to "
                f"{MOST_PREDICATES:,}; gather alternatives of one attribute with `in (…)`, or split it"
            )

    def _enter(self, ids: IdArray, forms: Expressions) -> None:
        sizes = np.diff(forms.bounds[forms.offsets])
        self._check(sizes)
        most = int(sizes.max())
        forms = self._weighed(ids, forms)
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._state = arrays.with_sizes(self._state, most, most)
        # A predicate takes up to three records, and a clause one; a block is up to half as large again.
        records = 3 * len(forms.tags) + len(forms.bounds) + 2 * len(ids)
        self._state = arrays.with_forms(self._state, len(ids), records + records // 2, 4 * most + 1)
        self._extend(forms)
        members = np.empty(len(ids), dtype=np.int64)
        store(self._state.book, ids, forms, members)
        try:
            self._place(forms)
        except BaseException:
            self._withdraw(forms)
            unlink(*self._links(), self._state.book.owner, members)
            gone = np.empty(len(members), dtype=np.int64)
            free_expressions(self._state.book, gone[: drop_members(self._state.book, members, gone)])
            raise

    def _extend(self, forms: Expressions) -> None:
        """Let domains grow by the constants of new forms."""
        grown = np.empty(2 * len(forms.tags) + len(forms.keys), dtype=np.int64)
        fields = self._state.directory.fields
        changed = grown[: survey(fields, self.expansion, forms, grown)]
        tops = self._state.draft.tops
        done, share = 0, _UNLIMITED
        try:
            while done < len(changed):
                self._make_room(len(changed) - done)
                reached = draft_growth(self._state.directory, self._state.draft, changed, done, share)
                needed = int(tops[NEEDED])
                self._place_drafted()
                ready = changed[done:reached]
                left = np.flatnonzero(_widen(fields, ready, share))
                finished = int(left[0]) if len(left) else len(ready)
                if needed > _DRAFT and share > 1:  # then a part of the way at a time
                    share = max(min(share, _way(fields, int(changed[reached]))) * _DRAFT // needed, 1)
                    tops[NEEDED] = 0
                elif finished:
                    share = _UNLIMITED
                done += finished
        except BaseException:
            self._state.draft.tops[RESUME] = 0
            withdraw_drafted(self._state.directory, self._state.draft)
            fields.wanted_low[changed], fields.wanted_high[changed] = (
                fields.low[changed],
                fields.high[changed],
            )
            raise

    def _place(self, forms: Expressions) -> None:
        done = 0
        while done < len(forms.numbers):
            done = self._draft(forms, done)
            self._place_drafted()

    def _withdraw(self, forms: Expressions) -> None:
        self._state.draft.tops[[DRAFTED, RESUME]] = 0
        done = 0
        while done < len(forms.numbers):
            done = self._draft(forms, done)
            withdraw_drafted(self._state.directory, self._state.draft)

    def _draft(self, forms: Expressions, done: int) -> int:
        """Draft entries of forms, as many as there is room for; return how many forms are done by then."""
        self._make_room(len(forms.numbers) - done)
        state = self._state
        return draft_forms(state.directory, state.draft, state.book.forms, forms, done)

    def _make_room(self, forms: int) -> None:
        """Make room for the draft of many forms, or for that of the one that there was no room for."""
        tops = self._state.draft.tops
        self._state = arrays.with_draft(self._state, max(int(tops[NEEDED]), min(16 * forms, _DRAFT)))
        tops[NEEDED] = 0

    def _place_drafted(self) -> None:
        state = self._state
        while not place_drafted(state.directory, state.draft):
            self._check_memory()
            tops = state.draft.tops
            state = self._state = arrays.with_entries(state, int(tops[DRAFTED] - tops[RESUME]))

    def _check_memory(self) -> None:
        """Raise `MatcherError` if the largest of the arrays cannot grow: no memory is left, or no entry can be told."""
        posted, keys = self._state.directory.posted, self._state.directory.keys.keys
        largest = max(posted.headers.rows.nbytes, posted.entries.words.nbytes, keys.nbytes)
        remedy = "expand less with a smaller `expansion`, or match with another matcher"
        if len(posted.entries.words) > _MOST_ENTRIES:
            raise MatcherError(f"k-index holds {_MOST_ENTRIES:,} entries at the most; {remedy}")
        if largest > _LARGE and available_mb() * 1e6 < 1.5 * largest:
            raise MatcherError(
                f"k-index does not fit: {self._bytes() / 1e9:,.1f} GB are to grow, and "
                f"{available_mb() / 1e3:,.1f} GB are left; {remedy}"
            )

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        with self._lock:
            for members in taken_from(ids, self._links):
                self._take_out(members)

    def _links(self) -> Links:
        book = self._state.book
        return book.ids, book.first, book.members

    def _take_out(self, members: Keys) -> None:
        """Give up members, and the forms that nobody has any more; what they say is read while it is held."""
        numbers = self._state.book.members[members, FORM].astype(np.int64)
        said = [(forms.tags, forms.lows) for forms in self._recalled(numbers)]  # each as often as it is had
        gone = np.empty(len(members), dtype=np.int64)
        gone = gone[: drop_members(self._state.book, members, gone)]
        for forms in self._recalled(gone):
            self._withdraw(forms)
        free_expressions(self._state.book, gone)
        for tags, lows in said:
            self.vocabulary.release(tags, lows)

    def _forms(self, offsets: Keys, bounds: Keys, tags: Keys, lows: Keys, highs: Keys) -> Expressions:
        """Return forms with the members of their lists, and numbers that are to be given yet."""
        numbers = np.empty(len(offsets) - 1, dtype=np.int64)
        lists = encode_lists(self.vocabulary, tags, lows)
        return Expressions(numbers, offsets, bounds, tags, lows, highs, _NO_WEIGHTS, *lists)

    def _recalled(self, numbers: Keys) -> Iterator[Expressions]:
        """Return what forms say, a part of them at a time."""
        done, room = 0, max(64, 8 * min(len(numbers), _SLICE))
        none = np.empty(0, dtype=np.int64)
        while done < len(numbers):
            count = min(len(numbers) - done, _SLICE)
            numbers_, offsets = np.empty(count, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
            bounds, tags, lows, highs = np.empty((4, room + 1), dtype=np.int64)
            weights = np.empty(room, dtype=np.float64)
            into = Expressions(
                numbers_, offsets, bounds, tags[1:], lows[1:], highs[1:], weights, none, none, none, none
            )
            reached = recall(self._state.book, numbers, done, into)
            if reached == done:
                room *= 2
                continue
            offsets = offsets[: reached - done + 1]
            bounds = bounds[: offsets[-1] + 1]
            said = slice(int(bounds[-1]))
            forms = self._forms(offsets, bounds, into.tags[said], into.lows[said], into.highs[said])
            yield forms._replace(numbers=into.numbers[: reached - done], weights=weights[said])
            done = reached


def _way(fields: Fields, field: int) -> int:
    """Return how many values a domain is to grow by at one end, the more at either."""
    return int(
        max(fields.low[field] - fields.wanted_low[field], fields.wanted_high[field] - fields.high[field])
    )


def _widen(fields: Fields, which: Keys, share: int) -> NDArray[np.bool_]:
    """Let domains grow towards what is wanted, by `share` values at either end; tell which have not come there."""
    low, high = fields.low[which], fields.high[which]
    new = low > high
    fields.low[which] = np.where(
        new, fields.wanted_low[which], np.maximum(fields.wanted_low[which], low - share)
    )
    fields.high[which] = np.where(
        new, fields.wanted_high[which], np.minimum(fields.wanted_high[which], high + share)
    )
    return np.asarray(
        (fields.low[which] != fields.wanted_low[which]) | (fields.high[which] != fields.wanted_high[which])
    )
