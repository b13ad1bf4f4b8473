"""S-MN: a server that multicasts each new answer once, with a list of the affected subscriptions (2.1.2)."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from tocsin.dissemination.multicast.multicast import Multicast
from tocsin.dissemination.query_kinds.base import Changes, Queries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.server_side import ServerStrategy
from tocsin.dissemination.strategies.strategy import EXTREMES, Outcome
from tocsin.dissemination.traffic import MessageRole, Traffic
from tocsin.matching import IdArray, Matches
from tocsin.views.changes import Floats


class ServerMulticast(ServerStrategy):
    """A message is a new answer and the affected subscriptions; each node lists only those beyond the next one."""

    name: ClassVar[str] = "S-MN"
    kinds: ClassVar[frozenset[str]] = EXTREMES  # all recipients of a message get the same answer

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        self.multicast = Multicast(setting.overlay, setting.server, seed=setting.seed)

    def _publish_checked(self, changes: Changes) -> Outcome:
        """Reformulate changes, list the subscriptions that each message affects, and multicast it to them."""
        begun = time.perf_counter()
        messages = self._server.reformulate(changes)
        found = self._ranges.match(messages)
        # Writing the lists is part of the server's work; the traffic depends on their lengths only.
        _write_lists(messages.payload["value"], found)
        seconds = time.perf_counter() - begun
        changed = self._answers.apply(messages, found)
        delivery = self.multicast.deliver(*self._count_by_gateway(found))
        traffic = Traffic.from_columns(
            messages.change[delivery.message],
            delivery.sender,
            delivery.receiver,
            size=self.setting.byte_model.of(1 + delivery.ids),
            step=delivery.step,
            role=MessageRole.SPREAD,
        )
        return Outcome(traffic, changed, seconds, int(np.count_nonzero(np.diff(found.offsets))))


def _write_lists(values: Floats, found: Matches) -> IdArray:
    """Return the messages as they leave the server, concatenated: a value's bits, then its subscriptions."""
    heads = found.offsets[:-1] + np.arange(len(found))
    fields = np.empty(len(found) + len(found.ids), dtype=np.int64)
    is_id = np.ones(len(fields), dtype=np.bool_)
    is_id[heads] = False
    fields[heads] = values.view(np.int64)
    fields[is_id] = found.ids
    return fields
