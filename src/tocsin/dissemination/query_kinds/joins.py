"""Pairs of rows of two tables whose keys are equal, of which a subscription wants those within its ranges (5)."""

from __future__ import annotations

from functools import cached_property
from typing import Final, cast

import numpy as np

from tocsin.dissemination.query_kinds.base import Ends, Queries, Relaxed, check_ranges
from tocsin.dissemination.query_kinds.join_pairs import PairAnswers, PairReformulator, ToldPairs
from tocsin.dissemination.query_kinds.join_rows import Image, JoinChanges, JoinRows, Table, image_of
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.model.subscription import Answer
from tocsin.views.changes import Floats
from tocsin.views.kinds.kind import Answers, Reformulator, Told
from tocsin.views.messages import Messages

_RAW: Final = 4  # which table, and the row's id, key and value
_PAIR: Final = 6  # the ids of both rows, their key, x, z, and whether they come or go
_TOLD: Final = 3  # the ids of both rows, and whether they come or go


class JoinQueries(Queries):
    """All (r, s) with r.key = s.key, low <= r.x <= high and z_low <= s.z <= z_high; answers are sorted pairs of ids.

    x is the value of R, and decides on gateways and ways; z is the value of S, and subscribers look at it themselves.
    Without ranges of z all are taken. Changes are `JoinChanges`.
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
        r.check(Table.R)
        s.check(Table.S)
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
        """Return how many rows both tables have at first."""
        return len(self.r) + len(self.s)

    @cached_property
    def _s_image(self) -> Image:
        return image_of(self.s)

    def check(self, changes: JoinChanges) -> None:
        """Raise `TocsinError` at a change of half a row."""
        changes.check()

    def new_server(self) -> PairReformulator:
        """Return the server's side with both tables."""
        return PairReformulator(image_of(self.r), self._s_image)

    def no_answers(self) -> Answers:
        """Return the subscribers' side before any has begun."""
        return PairAnswers(self.z_lows, self.z_highs)

    def begin(self, answers: Answers, server: Reformulator, numbers: IdArray) -> None:
        """Let subscriptions begin with the present pairs within their ranges."""
        answers.begin(numbers, server.present(self.lows[numbers], self.highs[numbers]))

    def answer(self, answers: Answers, number: int) -> Answer:
        """Return a subscription's pairs (r, s), ascending."""
        return answers.answer(number)

    def relaxed(self, changes: JoinChanges) -> Relaxed:
        """Return the quadrants of a row of R's old and new x; a row of S may be half of anybody's pairs.

        All subscriptions are in one rectangle: its corner has the largest lower end and the least upper end that there are.
        Zones below the diagonal that it meets hand messages on without having any subscription.
        """
        is_r, places = changes.table == Table.R, np.arange(len(changes))
        was = is_r & ~np.isnan(changes.old_value)
        comes = is_r & ~np.isnan(changes.new_value) & (changes.new_value != changes.old_value)
        everywhere = ~is_r & (len(self) > 0)
        change = np.concatenate([places[was], places[comes], places[everywhere]])
        x = np.concatenate([changes.old_value[was], changes.new_value[comes]])
        of_s = np.count_nonzero(everywhere)
        inner_l = np.concatenate([x, np.full(of_s, self.lows.max(initial=-np.inf))])
        inner_r = np.concatenate([x, np.full(of_s, self.highs.min(initial=np.inf))])
        order = np.argsort(change, kind="stable")
        infinite = np.full(len(change), np.inf)
        return Relaxed(Messages(change[order], inner_l[order], inner_r[order], -infinite, infinite), _RAW)

    def new_replica(self, low: float, high: float) -> PairReformulator:
        """Return a side with the rows of R whose x is within [low, high], and all of S."""
        begin, end = np.searchsorted(self.r.value, low), np.searchsorted(self.r.value, high, side="right")
        return PairReformulator(image_of(self.r.take(np.arange(begin, end))), self._s_image)

    def part(
        self, changes: JoinChanges, places: IdArray, low: float, high: float
    ) -> tuple[JoinChanges, IdArray]:
        """Return changes at some places, of R only within [low, high]: a row whose x leaves it goes, one that enters comes."""
        is_s = changes.table[places] == Table.S
        old, new = changes.old_value[places], changes.new_value[places]
        was, will = is_s | ((old >= low) & (old <= high)), is_s | ((new >= low) & (new <= high))
        seen = was | will
        places, was, will = places[seen], was[seen], will[seen]
        return (
            JoinChanges(
                changes.table[places],
                changes.id[places],
                np.where(was, changes.old_key[places], np.nan),
                np.where(was, old[seen], np.nan),
                np.where(will, changes.new_key[places], np.nan),
                np.where(will, new[seen], np.nan),
            ),
            places,
        )

    def kept(self, ends: Ends) -> int:
        """Return, of all ranges, the rows of R that have their x in them at first, and for each all of S."""
        return ends.holding(self.r.value) + len(ends.lows) * len(self.s)

    def gained(self, changes: JoinChanges, ends: Ends) -> int:
        """Return how many more that are after changes."""
        is_r = changes.table == Table.R
        of_r = ends.holding(changes.new_value[is_r]) - ends.holding(changes.old_value[is_r])
        came, went = np.isnan(changes.old_value[~is_r]), np.isnan(changes.new_value[~is_r])
        return of_r + len(ends.lows) * (int(np.count_nonzero(came)) - int(np.count_nonzero(went)))

    def fields(self, messages: Messages) -> IdArray:
        """Return a pair's fields; its x says which ranges it concerns."""
        return np.full(len(messages), _PAIR, dtype=np.int64)

    def told_fields(self, told: Told) -> IdArray:
        """Return the subscription, and for each pair that goes or comes its ids and its sign."""
        return 1 + _TOLD * cast("ToldPairs", told).pairs  # as answers of this queries tell

    def answer_fields(self, answers: Answers) -> int:
        """Return two ids for each pair."""
        found = (answers.answer(number) for number in range(len(self)))
        return sum(2 * len(pairs) for pairs in found if isinstance(pairs, tuple))
