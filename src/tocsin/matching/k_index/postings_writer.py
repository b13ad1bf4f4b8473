"""Writing posting lists: expressions are drafted as entries, and these are placed or withdrawn."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import Keys
from tocsin.matching.k_index import state as arrays
from tocsin.matching.k_index._kernels.domains import draft_growth, survey
from tocsin.matching.k_index._kernels.entries import draft_expressions
from tocsin.matching.k_index._kernels.placement import place_drafted, withdraw_drafted
from tocsin.matching.k_index.state import DraftTop, Fields, Setting, State
from tocsin.model.errors import MatcherError
from tocsin.structures.array_types import Bools
from tocsin.structures.growth import bytes_of
from tocsin.structures.memory import available_mb

_DRAFT: Final = 1 << 16  # entries that are drafted at a time, unless one expression has more
_MOST_ENTRIES: Final = 3 << 29  # above these, positions in a growing array may exceed 32 bits
_UNLIMITED: Final = 1 << 60  # values that a domain grows by at a time
_LARGE: Final = 1 << 26  # bytes of an array above which the available memory is checked


class PostingsWriter:
    """Owns the arrays of a k-index, which grow as entries are written."""

    def __init__(self, state: State) -> None:
        self.state = state

    def place(self, batch: Expressions) -> None:
        """Post the new expressions of a batch; a negative number is no new one."""
        done = 0
        while done < len(batch.numbers):
            done = self._draft(batch, done)
            self._place_drafted()

    def withdraw(self, batch: Expressions) -> None:
        """Remove the entries of expressions, also of such as are posted in part or not at all."""
        self.state.draft.tops[[DraftTop.DRAFTED, DraftTop.RESUME]] = 0
        done = 0
        while done < len(batch.numbers):
            done = self._draft(batch, done)
            withdraw_drafted(self.state.directory, self.state.draft)

    def extend_domains(self, batch: Expressions) -> None:
        """Let the domains of fields include the constants of a batch, and post open ranges under the new values."""
        directory, draft = self.state.directory, self.state.draft
        fields, tops = directory.fields, draft.tops
        grown = np.empty(2 * len(batch.tags) + len(batch.keys), dtype=np.int64)
        changed = grown[: survey(fields, int(draft.settings[Setting.EXPANSION]), batch, grown)]
        done, share = 0, _UNLIMITED
        try:
            while done < len(changed):
                self._make_draft_room(len(changed) - done)
                reached = draft_growth(self.state.directory, self.state.draft, changed, done, share)
                needed = int(tops[DraftTop.NEEDED])
                self._place_drafted()
                ready = changed[done:reached]
                left = np.flatnonzero(_widen(fields, ready, share))
                finished = int(left[0]) if len(left) else len(ready)
                if needed > _DRAFT and share > 1:  # too many entries for one draft: grow in steps
                    share = max(min(share, _distance(fields, int(changed[reached]))) * _DRAFT // needed, 1)
                    tops[DraftTop.NEEDED] = 0
                elif finished:
                    share = _UNLIMITED
                done += finished
        except BaseException:
            self.state.draft.tops[DraftTop.RESUME] = 0
            withdraw_drafted(self.state.directory, self.state.draft)
            fields.wanted_low[changed] = fields.low[changed]
            fields.wanted_high[changed] = fields.high[changed]
            raise

    def _draft(self, batch: Expressions, done: int) -> int:
        """Draft entries of expressions, as many as fit; return the number of expressions done by then."""
        self._make_draft_room(len(batch.numbers) - done)
        state = self.state
        return draft_expressions(state.directory, state.draft, state.table.rows, batch, done)

    def _make_draft_room(self, expressions: int) -> None:
        """Make room for the draft of many expressions, or for the one that did not fit."""
        tops = self.state.draft.tops
        entries = max(int(tops[DraftTop.NEEDED]), min(16 * expressions, _DRAFT))
        self.state = arrays.with_draft(self.state, entries)
        tops[DraftTop.NEEDED] = 0

    def _place_drafted(self) -> None:
        while not place_drafted(self.state.directory, self.state.draft):
            self._check_memory()
            tops = self.state.draft.tops
            left = int(tops[DraftTop.DRAFTED] - tops[DraftTop.RESUME])
            self.state = arrays.with_entries(self.state, left)

    def _check_memory(self) -> None:
        """Raise `MatcherError` if the largest of the arrays cannot grow."""
        posted, keys = self.state.directory.posted, self.state.directory.keys.keys
        largest = max(posted.headers.rows.nbytes, posted.entries.words.nbytes, keys.nbytes)
        remedy = "expand less with a smaller `expansion`, or match with another matcher"
        if len(posted.entries.words) > _MOST_ENTRIES:
            raise MatcherError(f"k-index holds {_MOST_ENTRIES:,} entries at the most; {remedy}")
        if largest > _LARGE and available_mb() * 1e6 < 1.5 * largest:
            raise MatcherError(
                f"k-index does not fit: {bytes_of(self.state) / 1e9:,.1f} GB are to grow, and "
                f"{available_mb() / 1e3:,.1f} GB are left; {remedy}"
            )


def _distance(fields: Fields, field: int) -> int:
    """Return how many values a domain grows by at one end, whichever has more."""
    below = fields.low[field] - fields.wanted_low[field]
    return int(max(below, fields.wanted_high[field] - fields.high[field]))


def _widen(fields: Fields, which: Keys, share: int) -> Bools:
    """Grow domains by up to `share` values at either end; tell which are not as wide as wanted yet."""
    low, high = fields.low[which], fields.high[which]
    wanted_low, wanted_high = fields.wanted_low[which], fields.wanted_high[which]
    new = low > high
    fields.low[which] = np.where(new, wanted_low, np.maximum(wanted_low, low - share))
    fields.high[which] = np.where(new, wanted_high, np.minimum(wanted_high, high + share))
    return np.asarray((fields.low[which] != wanted_low) | (fields.high[which] != wanted_high))
