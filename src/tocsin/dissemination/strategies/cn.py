"""CN: no server; a change goes to all subscriptions whose range contains it, and each stores all rows of its range (2.2.1)."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
from msgspec.structs import replace

from tocsin.dissemination.byte_model import ROW_FIELDS
from tocsin.dissemination.columns import is_run_start
from tocsin.dissemination.query_kinds.base import Changes, Queries, RangeEnds, StoredRowCount
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.content_network import Gateways, by_zone, spread_traffic
from tocsin.dissemination.strategies.strategy import EVERY_KIND, Outcome, StoredState, Strategy
from tocsin.matching import IdArray
from tocsin.views.aggregates.base import PointError, Reformulator
from tocsin.views.answer_changes import NO_CHANGES, AnswerChanges
from tocsin.views.messages import Messages

_UINT16: Final = 1 << 16  # zones whose numbers fit into 16 bits


class ContentNetwork(Strategy):
    """Subscriptions at one gateway share a replica: the rows within the hull of their ranges.

    A gateway finds the affected ones among its subscriptions from its own replica.
    """

    name: ClassVar[str] = "CN"
    kinds: ClassVar[frozenset[str]] = EVERY_KIND

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        zones = len(setting.can)
        self._lows, self._highs = np.full(zones, np.inf), np.full(zones, -np.inf)
        np.minimum.at(self._lows, self.gateways, queries.lows)
        np.maximum.at(self._highs, self.gateways, queries.highs)
        self._answers = queries.empty_answers()
        self._replicas: dict[int, Reformulator] = {}  # by zone; none where there is no subscription
        for zone, numbers in by_zone(self.gateways):
            replica = queries.new_replica(float(self._lows[zone]), float(self._highs[zone]))
            queries.begin(self._answers, replica, numbers)
            self._replicas[zone] = replica
        self._gateways = Gateways(setting.can, queries, self.gateways, self._answers)
        used = list(self._replicas)
        self._own_rows = StoredRowCount(queries, RangeEnds.of(queries.lows, queries.highs))
        self._shared_rows = StoredRowCount(queries, RangeEnds.of(self._lows[used], self._highs[used]))

    def _publish_checked(self, changes: Changes) -> Outcome:
        """Spread changes from the owner of their point over the quadrant of ranges that contain it."""
        relaxed = self.queries.relaxed(changes)
        trees = self.setting.can.spread(relaxed.messages)
        positions = np.repeat(relaxed.messages.change, np.diff(trees.starts))
        traffic = spread_traffic(self.setting, relaxed.messages.change, trees, relaxed.fields)
        changed = self._apply(changes, positions, trees.zones)
        self._own_rows.follow(changes)
        self._shared_rows.follow(changes)
        return Outcome(traffic, changed)

    def _apply(self, changes: Changes, positions: IdArray, zones: IdArray) -> AnswerChanges:
        """Apply the change at each position to the replica of its zone, and return the answers that change."""
        # NumPy sorts 16-bit numbers in linear time.
        narrow = zones.astype(np.uint16) if len(self.setting.can) <= _UINT16 else zones
        order = np.argsort(narrow, kind="stable")
        zones, positions = zones[order], positions[order]
        # A zone that meets both quadrants of a change applies it once.
        first = is_run_start(zones, positions)
        zones, positions = zones[first], positions[first]
        found: list[Messages] = []
        reached: list[IdArray] = []
        ends = np.searchsorted(zones, np.arange(len(self.setting.can) + 1))
        for zone, replica in self._replicas.items():
            received = positions[ends[zone] : ends[zone + 1]]
            part, kept = self.queries.replica_changes(changes, received, self._lows[zone], self._highs[zone])
            if len(kept):
                try:
                    messages = replica.reformulate(part)
                except PointError as fault:
                    raise fault.at(int(kept[fault.position])) from None
                found.append(replace(messages, change=kept[messages.change]))
                reached.append(np.full(len(messages), zone, dtype=np.int64))
        if not found:
            return NO_CHANGES
        messages = Messages.together(found)
        order = np.argsort(messages.change, kind="stable")
        return self._gateways.receive(messages.take(order), np.concatenate(reached)[order])

    @property
    def stored_state(self) -> StoredState:
        """Return the rows within each subscription's range, counted once per subscription, and its answer."""
        shared = self.setting.byte_model.field * ROW_FIELDS * self._shared_rows.rows
        return self._stored(
            f"a subscription all rows in its range ({shared:,} bytes if a gateway's share them)",
            subscribers=ROW_FIELDS * self._own_rows.rows + self.queries.answer_fields(self._answers),
        )
