"""k-index as a matcher (Whang et al. 2009)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tocsin.language import parse_condition, to_cnf
from tocsin.matching.batches import Clauses, ConjunctionBatch, EventBatch, IdArray
from tocsin.matching.encoding.codes import FIELD_BITS, Keys, Op
from tocsin.matching.encoding.conjunctions import EncodedClauses, EncodedConjunctions
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.indexed import IndexedMatcher
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.domains import draft_growth, survey
from tocsin.matching.k_index._kernels.drafting import draft_forms
from tocsin.matching.k_index._kernels.matching import match
from tocsin.matching.k_index._kernels.placing import place_drafted, withdraw_drafted
from tocsin.matching.k_index._kernels.storing import bury, detach, forsake, members_of, recall, store
from tocsin.matching.k_index.state import (
    CANDIDATES,
    DRAFTED,
    ENTRIES,
    FORM,
    LISTS,
    LIVE_FORMS,
    LIVE_MEMBERS,
    LOOKED,
    MOST_CLAUSES,
    MOST_PREDICATES,
    MOST_SIZE,
    NEEDED,
    PREDICATES,
    RESUME,
    SEEN,
    SIBLING,
    STEPS,
    TOP_MEMBER,
    Forms,
    State,
    new_state,
)
from tocsin.matching.matcher import MatcherStats
from tocsin.matching.registry import register
from tocsin.model.errors import MatcherError
from tocsin.structures import hash_index
from tocsin.structures.hash_index import HashIndex

__all__ = ["KIndex"]

_SLICE: Final = 1 << 16  # forms that are handled at a time
_DRAFT: Final = 1 << 16  # entries that are drafted at a time, unless one form has more
_ABSENCE: Final = ("fails", "satisfies")
_NO_WEIGHTS: Final = np.empty(0, dtype=np.float64)


@register("k-index")
class KIndex(IndexedMatcher):
    """Keeps forms in posting lists by attribute and value, and goes through the lists of an event's values at once.

    A form is a conjunction, or clauses of which each must hold. Ranges of whole numbers are expanded into values, if
    those that an attribute is compared with are at most `expansion` apart; others are keys of their own. A negation
    over an absent attribute `"fails"`, as the language says, or, as the paper has it, `absence="satisfies"` it.
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
        self._state: State = new_state(expansion, absence=absence == "satisfies")

    # changes

    def add_encoded(self, batch: EncodedConjunctions) -> None:
        """Add conjunctions that are encoded already, with this matcher's vocabulary."""
        bounds = np.arange(len(batch.tags) + 1, dtype=np.int64)
        with self._lock:
            self._add(batch.ids, self._forms(batch.offsets, bounds, batch.tags, batch.lows, batch.highs))

    def add_encoded_clauses(self, batch: EncodedClauses) -> None:
        """Add clause forms that are encoded already, with this matcher's vocabulary."""
        with self._lock:
            self._add(
                batch.ids, self._forms(batch.offsets, batch.bounds, batch.tags, batch.lows, batch.highs)
            )

    def _check(self, sizes: Keys) -> None:
        """Raise `MatcherError` if a form has more predicates than this matcher counts."""
        if len(sizes) and sizes.max() > MOST_PREDICATES:
            raise MatcherError(
                f"a subscription has {sizes.max():,} predicates, and k-index takes up to "
                f"{MOST_PREDICATES:,}; gather alternatives of one attribute with `in (…)`, or split it"
            )

    def _add(self, ids: IdArray, forms: Forms) -> None:
        sizes = np.diff(forms.bounds[forms.offsets])
        self._check(sizes)
        if not len(ids):
            return
        most = int(sizes.max())
        self._state = arrays.with_attributes(self._state, self.vocabulary.names.top)
        self._state = arrays.with_sizes(self._state, most, most)
        # A predicate takes up to three records, and a clause one; a block is up to half as large again.
        records = 3 * len(forms.tags) + len(forms.bounds) + 2 * len(ids)
        self._state = arrays.with_forms(self._state, len(ids), records + records // 2, 4 * most + 1)
        self._extend(forms)
        self.vocabulary.hold(forms.tags, forms.lows)
        members = np.empty(len(ids), dtype=np.int64)
        store(self._state.book, ids, forms, members)
        try:
            self._place(forms)
        except BaseException:
            self._withdraw(forms)
            detach(self._state.book, members)
            gone = np.empty(len(members), dtype=np.int64)
            bury(self._state.book, gone[: forsake(self._state.book, members, gone)])
            self.vocabulary.release(forms.tags, forms.lows)
            raise

    def _extend(self, forms: Forms) -> None:
        """Let domains grow by the constants of new forms."""
        grown = np.empty(2 * len(forms.tags) + len(forms.keys), dtype=np.int64)
        fields = self._state.directory.fields
        changed = grown[: survey(fields, self.expansion, forms, grown)]
        done = 0
        while done < len(changed):
            self._make_room(len(changed) - done)
            reached = draft_growth(self._state.directory, self._state.draft, changed, done)
            self._place_drafted()
            ready = changed[done:reached]
            fields.low[ready], fields.high[ready] = fields.wanted_low[ready], fields.wanted_high[ready]
            done = reached

    def _place(self, forms: Forms) -> None:
        done = 0
        while done < len(forms.numbers):
            done = self._draft(forms, done)
            self._place_drafted()

    def _withdraw(self, forms: Forms) -> None:
        self._state.draft.tops[[DRAFTED, RESUME]] = 0
        done = 0
        while done < len(forms.numbers):
            done = self._draft(forms, done)
            withdraw_drafted(self._state.directory, self._state.draft)

    def _draft(self, forms: Forms, done: int) -> int:
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
            tops = state.draft.tops
            state = self._state = arrays.with_entries(state, int(tops[DRAFTED] - tops[RESUME]))

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        # Kernels are compiled once more for an array that they may not write to.
        wanted = np.require(ids, dtype=np.int64, requirements=["C", "W"])
        with self._lock:
            members = np.empty(max(64, min(len(wanted), _SLICE)), dtype=np.int64)
            done = 0
            while done < len(wanted):
                done, found = members_of(self._state.book, wanted, done, members)
                if found:
                    self._take_out(members[:found])
                elif done < len(wanted):
                    members = np.empty(2 * len(members), dtype=np.int64)

    def _take_out(self, members: Keys) -> None:
        """Give up members, and the forms that nobody has any more; what they say is read while it is held."""
        numbers = self._state.book.members[members, FORM].astype(np.int64)
        said = [(forms.tags, forms.lows) for forms in self._recalled(numbers)]  # each as often as it is had
        gone = np.empty(len(members), dtype=np.int64)
        gone = gone[: forsake(self._state.book, members, gone)]
        for forms in self._recalled(gone):
            self._withdraw(forms)
        bury(self._state.book, gone)
        for tags, lows in said:
            self.vocabulary.release(tags, lows)

    def _forms(self, offsets: Keys, bounds: Keys, tags: Keys, lows: Keys, highs: Keys) -> Forms:
        """Return forms with the members of their lists, and numbers that are to be given yet."""
        ops = tags >> FIELD_BITS
        lists = np.flatnonzero((ops == Op.IN) | (ops == Op.NOT_IN))
        which = np.full(len(tags), -1, dtype=np.int64)
        codes, which[lists] = np.unique(lows[lists], return_inverse=True)
        members = [self.vocabulary.members(code) for code in codes.tolist()]
        starts = np.zeros(len(codes) + 1, dtype=np.int64)
        np.cumsum([len(keys) for _, keys in members], out=starts[1:])
        none = np.empty(0, dtype=np.int64)
        fields = np.concatenate([fields for fields, _ in members]) if members else none
        keys = np.concatenate([keys for _, keys in members]) if members else none
        numbers = np.empty(len(offsets) - 1, dtype=np.int64)
        return Forms(numbers, offsets, bounds, tags, lows, highs, _NO_WEIGHTS, which, starts, fields, keys)

    def _recalled(self, numbers: Keys) -> Iterator[Forms]:
        """Return what forms say, a part of them at a time."""
        done, room = 0, max(64, 8 * min(len(numbers), _SLICE))
        none = np.empty(0, dtype=np.int64)
        while done < len(numbers):
            count = min(len(numbers) - done, _SLICE)
            numbers_, offsets = np.empty(count, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
            bounds, tags, lows, highs = np.empty((4, room + 1), dtype=np.int64)
            weights = np.empty(room, dtype=np.float64)
            into = Forms(
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

    def _follow(self, events: int) -> None:
        """Do nothing: there is nothing to be done later."""

    # questions

    def match_encoded(self, events: EncodedEvents) -> tuple[Keys, Keys]:
        """Return the members whose form each event satisfies, and where each event's begin.

        One above `UNSURE` has predicates left that only Python can tell.
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
                more = np.empty(4 * len(found), dtype=np.int64)
                more[: offsets[reached]] = found[: offsets[reached]]
                found = more
            done = reached
        return found[: offsets[-1]], offsets

    def _left_to_python(self, numbers: list[int]) -> dict[int, Clauses]:
        """Return, of members that are unsure, the clauses that have yet to be told."""
        return {number: self._said(number, only_residual=True) for number in numbers}

    def _said(self, member: int, *, only_residual: bool = False) -> Clauses:
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

    def _held(self, entry: int) -> list[Clauses]:
        """Return the forms of a subscription, in the order they came."""
        held: list[Clauses] = []
        member = int(self._state.book.first[entry])
        while member >= 0:
            held.append(self._said(member))
            member = int(self._state.book.members[member, SIBLING])
        return held[::-1]

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

    def _holding(self) -> tuple[Keys, Keys]:
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
