"""Join queries: the pairs of rows of two tables with equal keys and values within a subscription's ranges (5)."""

from __future__ import annotations

from functools import cached_property
from typing import Final, cast

import numpy as np

from tocsin.dissemination.query_kinds.base import Queries, RangeEnds, Relaxed, check_ranges
from tocsin.dissemination.query_kinds.join_pairs import ChangedPairs, PairAnswers, PairReformulator
from tocsin.dissemination.query_kinds.join_rows import JoinChanges, JoinRows, JoinSide, TableImage, image_of
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.model.subscription import Answer
from tocsin.views.aggregates.base import Answers
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages

_ROW_FIELDS: Final = 4  # the table, and the row's id, key and value
_PAIR_FIELDS: Final = 6  # the ids of both rows, their key, x, z, and whether they come or go
_CHANGE_FIELDS: Final = 3  # the ids of both rows, and whether they come or go


class JoinQueries(Queries):
    """All (r, s) with r.key = s.key, low <= r.x <= high and z_low <= s.z <= z_high; answers are sorted pairs of ids.

    x is the value of R and decides gateways and routes; z is the value of S, and subscribers filter by it. Without
    ranges of z all pairs qualify. Changes are `JoinChanges`.
    """

    kind = "join"

    def __init__(
        self,
        r: JoinRows,
        s: JoinRows,
        lows: Floats,
        highs: Floats,
        *,
        z_lows: Floats | None = None,
        z_highs: Floats | None = None,
    ) -> None:
        check_ranges(lows, highs)
        r.check(JoinSide.R)
        s.check(JoinSide.S)
        self.r, self.s = r.take(np.argsort(r.value, kind="stable")), s
        self.lows, self.highs = lows, highs
        self.z_lows = np.full(len(lows), -np.inf) if z_lows is None else z_lows
        self.z_highs = np.full(len(lows), np.inf) if z_highs is None else z_highs
        if not len(self.z_lows) == len(self.z_highs) == len(lows):
            raise TocsinError(
                f"{len(self.z_lows)} and {len(self.z_highs)} ends of ranges of z for {len(lows)} subscriptions; "
                f"give one of each for every subscription, infinite where there is no bound"
            )
        if len(wrong := np.flatnonzero(~(self.z_lows <= self.z_highs))):
            at = int(wrong[0])
            raise TocsinError(
                f"subscription {at}: [{self.z_lows[at]}, {self.z_highs[at]}] is no range of z; the lower end comes first"
            )

    @property
    def rows(self) -> int:
        """Return how many initial rows both tables have."""
        return len(self.r) + len(self.s)

    @cached_property
    def _s_image(self) -> TableImage:
        return image_of(self.s)

    def check(self, changes: JoinChanges) -> None:
        """Raise `TocsinError` at a malformed change."""
        changes.check()

    def new_server(self) -> PairReformulator:
        """Return a server with both tables."""
        return PairReformulator(image_of(self.r), self._s_image)

    def empty_answers(self) -> Answers:
        """Return the subscribers' side before any has begun."""
        return PairAnswers(self.z_lows, self.z_highs)

    def answer(self, answers: Answers, number: int) -> Answer:
        """Return a subscription's pairs (r, s), ascending."""
        return answers.answer(number)

    def relaxed(self, changes: JoinChanges) -> Relaxed:
        """Return the quadrants of the old and the new x of a row of R; a row of S goes to all subscriptions.

        One rectangle contains all subscriptions: its corner has the largest lower end and the least upper end. Zones
        below the diagonal that it meets forward messages without having any subscription.
        """
        is_r, positions = changes.table == JoinSide.R, np.arange(len(changes))
        was = is_r & ~np.isnan(changes.old_value)
        is_new = is_r & ~np.isnan(changes.new_value) & (changes.new_value != changes.old_value)
        everywhere = ~is_r & (len(self) > 0)
        change = np.concatenate([positions[was], positions[is_new], positions[everywhere]])
        x = np.concatenate([changes.old_value[was], changes.new_value[is_new]])
        of_s = np.count_nonzero(everywhere)
        inner_l = np.concatenate([x, np.full(of_s, self.lows.max(initial=-np.inf))])
        inner_r = np.concatenate([x, np.full(of_s, self.highs.min(initial=np.inf))])
        order = np.argsort(change, kind="stable")
        infinite = np.full(len(change), np.inf)
        messages = Messages(change[order], inner_l[order], inner_r[order], -infinite, infinite)
        return Relaxed(messages, _ROW_FIELDS)

    def new_replica(self, low: float, high: float) -> PairReformulator:
        """Return a replica of the rows of R whose x is within [low, high], and of all of S."""
        begin, end = np.searchsorted(self.r.value, low), np.searchsorted(self.r.value, high, side="right")
        return PairReformulator(image_of(self.r.take(np.arange(begin, end))), self._s_image)

    def replica_changes(
        self, changes: JoinChanges, positions: IdArray, low: float, high: float
    ) -> tuple[JoinChanges, IdArray]:
        """Return the changes that a replica sees, and their positions: of S all, of R those within [low, high]."""
        is_s = changes.table[positions] == JoinSide.S
        old, new = changes.old_value[positions], changes.new_value[positions]
        was, will = is_s | ((old >= low) & (old <= high)), is_s | ((new >= low) & (new <= high))
        seen = was | will
        positions, was, will = positions[seen], was[seen], will[seen]
        return (
            JoinChanges(
                changes.table[positions],
                changes.id[positions],
                np.where(was, changes.old_key[positions], np.nan),
                np.where(was, old[seen], np.nan),
                np.where(will, changes.new_key[positions], np.nan),
                np.where(will, new[seen], np.nan),
            ),
            positions,
        )

    def stored_rows(self, ends: RangeEnds) -> int:
        """Return the sum over ranges of the initial rows of R with x in each, and of all rows of S."""
        return ends.count_containing(self.r.value) + len(ends.lows) * len(self.s)

    def gained_rows(self, changes: JoinChanges, ends: RangeEnds) -> int:
        """Return how many more rows that are after changes."""
        is_r = changes.table == JoinSide.R
        old, new = changes.old_value, changes.new_value
        of_r = ends.count_containing(new[is_r]) - ends.count_containing(old[is_r])
        came, went = np.isnan(old[~is_r]), np.isnan(new[~is_r])
        return of_r + len(ends.lows) * (int(np.count_nonzero(came)) - int(np.count_nonzero(went)))

    def fields(self, messages: Messages) -> IdArray:
        """Return a pair's fields; its x says which ranges it affects."""
        return np.full(len(messages), _PAIR_FIELDS, dtype=np.int64)

    def notification_fields(self, changed: AnswerChanges) -> IdArray:
        """Return the field of the subscription, and three fields for each removed or added pair: its ids and sign."""
        return 1 + _CHANGE_FIELDS * cast("ChangedPairs", changed).pairs  # the type that `PairAnswers` returns

    def answer_fields(self, answers: Answers) -> int:
        """Return two ids for each pair."""
        found = (answers.answer(number) for number in range(len(self)))
        return sum(2 * len(pairs) for pairs in found if isinstance(pairs, tuple))
