"""S-UN: a server that sends every affected subscription a message of its own (2.1.1)."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.query_kinds.base import Changes
from tocsin.dissemination.strategies.server_side import ServerStrategy, by_node
from tocsin.dissemination.strategies.strategy import EVERY_KIND, Outcome
from tocsin.dissemination.traffic import Role, Traffic
from tocsin.matching import IdArray, Matches
from tocsin.views.kinds.kind import Told

_VALUE: Final = "value"


class ServerUnicast(ServerStrategy):
    """Messages go from the server to gateways over the shortest paths, one for each answer that changes."""

    name: ClassVar[str] = "S-UN"
    kinds: ClassVar[frozenset[str]] = EVERY_KIND

    def _carry(self, changes: Changes) -> Outcome:
        """Reformulate changes, find all whom they concern, and send each its new answer."""
        begun = time.perf_counter()
        messages = self._server.reformulate(changes)
        found = self._listeners.hear(messages)
        told = None
        if _VALUE in messages.payload:
            # Nothing but the message is needed to know the new answer: gateways set it when it comes.
            new = np.repeat(messages.payload[_VALUE], np.diff(found.offsets))
            outgoing = _assembled(found.ids, new)
        else:
            told = self._answers.tell(messages, found)
            outgoing = _assembled(told.places, told.new)
        seconds = time.perf_counter() - begun
        if told is None:
            told = self._answers.tell(messages, found)
        ends = np.zeros(len(changes) + 1, dtype=np.int64)
        np.cumsum(np.bincount(told.change, minlength=len(changes)), out=ends[1:])
        starts, nodes, counts = by_node(Matches(ends, told.places), self.gateways, len(self.setting.overlay))
        sent = Traffic.of(
            np.repeat(np.arange(len(changes)), np.diff(starts)),
            np.full(len(nodes), self.setting.server, dtype=np.int64),
            nodes,
            messages=counts,
            size=self._sizes(told, starts, nodes, counts),
            step=np.zeros(len(nodes), dtype=np.int64),
            role=Role.SPREAD,
        )
        return Outcome(sent, told, seconds, len(outgoing))

    def _sizes(self, told: Told, starts: IdArray, nodes: IdArray, counts: IdArray) -> IdArray:
        """Return the bytes of all messages from the server to each node for each event."""
        sizes = self.setting.byte_model
        fields = self.queries.told_fields(told)
        if not len(fields) or fields.min() == fields.max():
            return counts * sizes.of(int(fields.max(initial=0)))
        every = len(self.setting.overlay)
        lines = np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * every + nodes
        order = np.argsort(lines)
        at = np.searchsorted(lines[order], told.change * every + self.gateways[told.places])
        summed = np.empty(len(lines), dtype=np.int64)
        summed[order] = np.bincount(at, weights=fields, minlength=len(lines))
        return counts * sizes.header + summed * sizes.field


def _assembled(subscriptions: IdArray, answers: NDArray[Any]) -> NDArray[np.void]:
    """Return a message to each subscription."""
    outgoing = np.empty(len(subscriptions), dtype=[("subscription", np.int64), ("answer", answers.dtype)])
    outgoing["subscription"], outgoing["answer"] = subscriptions, answers
    return outgoing


STRATEGY: Final = ServerUnicast
