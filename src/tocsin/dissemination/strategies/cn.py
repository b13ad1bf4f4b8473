"""CN: no server; every change goes to all subscriptions whose range it is in, and they keep all rows (2.2.1)."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from tocsin.dissemination.query_kinds.base import Changes, Ends, Queries, RowCount
from tocsin.dissemination.runs import is_first
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.gateways import Gateways, by_zone, spread_traffic
from tocsin.dissemination.strategies.strategy import EVERY_KIND, NOBODY, Outcome, StoredState, Strategy
from tocsin.matching import IdArray
from tocsin.model.subscription import Answer
from tocsin.views.kinds.kind import PointError, Reformulator, Told
from tocsin.views.messages import Messages

_NARROW: Final = 1 << 16  # zones whose numbers have 16 bits


class ContentNetwork(Strategy):
    """Subscriptions at one gateway share the rows that they keep: those within the widest range that holds all theirs.

    A gateway works out from its own rows whom of its subscriptions a change concerns.
    """

    name: ClassVar[str] = "CN"
    kinds: ClassVar[frozenset[str]] = EVERY_KIND

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        zones = len(setting.can)
        self._lows, self._highs = np.full(zones, np.inf), np.full(zones, -np.inf)
        np.minimum.at(self._lows, self.gateways, queries.lows)
        np.maximum.at(self._highs, self.gateways, queries.highs)
        self._answers = queries.no_answers()
        self._replicas: dict[int, Reformulator] = {}  # by zone; none where there is no subscription
        for zone, numbers in by_zone(self.gateways):
            replica = queries.new_replica(float(self._lows[zone]), float(self._highs[zone]))
            queries.begin(self._answers, replica, numbers)
            self._replicas[zone] = replica
        self._gateways = Gateways(setting.can, queries, self.gateways, self._answers)
        held = list(self._replicas)
        self._own = RowCount(queries, Ends.of(queries.lows, queries.highs))
        self._shared = RowCount(queries, Ends.of(self._lows[held], self._highs[held]))

    def _carry(self, changes: Changes) -> Outcome:
        """Let changes spread over the quadrants of ranges that they are in, from the owner of their point."""
        relaxed = self.queries.relaxed(changes)
        spread = self.setting.can.spread(relaxed.messages)
        of = np.repeat(relaxed.messages.change, np.diff(spread.starts))
        sent = spread_traffic(self.setting, relaxed.messages.change, spread, relaxed.fields)
        told = self._hear(changes, of, spread.zones)
        self._own.follow(changes)
        self._shared.follow(changes)
        return Outcome(sent, told)

    def _hear(self, changes: Changes, places: IdArray, zones: IdArray) -> Told:
        """Return which answers change as each zone gets changes, by their places."""
        narrow = zones.astype(np.uint16) if len(self.setting.can) <= _NARROW else zones
        order = np.argsort(narrow, kind="stable")  # of narrow numbers in linear time
        zones, places = zones[order], places[order]
        # A zone that two quadrants of a change meet follows it once.
        first = is_first(zones, places)
        zones, places = zones[first], places[first]
        found: list[Messages] = []
        reached: list[IdArray] = []
        ends = np.searchsorted(zones, np.arange(len(self.setting.can) + 1))
        for zone, replica in self._replicas.items():
            within = places[ends[zone] : ends[zone + 1]]
            part, kept = self.queries.part(changes, within, self._lows[zone], self._highs[zone])
            if len(kept):
                try:
                    messages = replica.reformulate(part)
                except PointError as fault:
                    raise fault.at(int(kept[fault.place])) from None
                found.append(messages.renumbered(kept[messages.change]))
                reached.append(np.full(len(messages), zone, dtype=np.int64))
        if not found:
            return NOBODY
        messages = Messages.together(found)
        order = np.argsort(messages.change, kind="stable")
        heard_at = np.concatenate(reached)[order]
        return self._gateways.hear(messages.take(order), heard_at)

    def answer(self, number: int) -> Answer:
        """Return the answer that a subscription has worked out."""
        return self.queries.answer(self._answers, number)

    @property
    def stored_state(self) -> StoredState:
        """Return the rows that subscriptions keep, each its own and its answer."""
        field = self.setting.byte_model.field
        words = f"a subscription all rows in its range ({self._shared.rows * 3 * field:,} bytes if a gateway's share them)"
        kept = 3 * self._own.rows + self.queries.answer_fields(self._answers)
        return StoredState(0, 0, field * kept, words)


STRATEGY: Final = ContentNetwork
