"""S-MN: a server that sends each new answer once, down a hierarchy of multicasts, with a list of whom it concerns (2.1.2)."""

from __future__ import annotations

import time
from typing import ClassVar, Final

import numpy as np

from tocsin.dissemination.multicast.multicast import Multicast
from tocsin.dissemination.query_kinds.base import Changes, Queries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.server_side import ServerStrategy, by_node
from tocsin.dissemination.strategies.strategy import Outcome
from tocsin.dissemination.traffic import Role, Traffic
from tocsin.matching import IdArray, Matches
from tocsin.views.changes import Floats


class ServerMulticast(ServerStrategy):
    """A message is a new answer and the subscriptions that have it now; those who hand it on list those beyond alone."""

    name: ClassVar[str] = "S-MN"
    kinds: ClassVar[frozenset[str]] = frozenset(
        {"min", "max"}
    )  # their messages are answers, the same for all

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        self.multicast = Multicast(setting.overlay, setting.server, seed=setting.seed)

    def _carry(self, changes: Changes) -> Outcome:
        """Reformulate changes, list whom each message concerns, and send it to all of them together."""
        begun = time.perf_counter()
        messages = self._server.reformulate(changes)
        found = self._listeners.hear(messages)
        # To make the lists is part of the server's work; what becomes of them depends on their lengths alone.
        _listed(messages.payload["value"], found)
        seconds = time.perf_counter() - begun
        told = self._answers.tell(messages, found)
        carried = self.multicast.carry(*by_node(found, self.gateways, len(self.setting.overlay)))
        sizes = self.setting.byte_model
        sent = Traffic.of(
            messages.change[carried.message],
            carried.sender,
            carried.receiver,
            size=sizes.of(1) + sizes.field * carried.ids,
            step=carried.step,
            role=Role.SPREAD,
        )
        return Outcome(sent, told, seconds, int(np.count_nonzero(np.diff(found.offsets))))


def _listed(values: Floats, found: Matches) -> IdArray:
    """Return the messages as they leave the server, one after another: a value's bits, then the numbers of all who get it."""
    heads = found.offsets[:-1] + np.arange(len(found))
    fields = np.empty(len(found) + len(found.ids), dtype=np.int64)
    is_id = np.ones(len(fields), dtype=np.bool_)
    is_id[heads] = False
    fields[heads] = values.view(np.int64)
    fields[is_id] = found.ids
    return fields


STRATEGY: Final = ServerMulticast
