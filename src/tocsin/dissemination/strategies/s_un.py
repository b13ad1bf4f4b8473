"""S-UN: a server that sends every affected subscription a message of its own (2.1.1)."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination._kernels.gateway_counts import GatewayCounts
from tocsin.dissemination.columns import offsets_of
from tocsin.dissemination.query_kinds.base import Changes
from tocsin.dissemination.strategies.server_side import ServerStrategy
from tocsin.dissemination.strategies.strategy import EVERY_KIND, Outcome
from tocsin.dissemination.traffic import MessageRole, Traffic
from tocsin.matching import IdArray, Matches
from tocsin.views.answer_changes import AnswerChanges

_VALUE: Final = "value"


class ServerUnicast(ServerStrategy):
    """Messages go from the server to gateways over the shortest paths, one for each answer that changes."""

    name: ClassVar[str] = "S-UN"
    kinds: ClassVar[frozenset[str]] = EVERY_KIND

    def _publish_checked(self, changes: Changes) -> Outcome:
        """Reformulate changes, find the affected subscriptions, and send each its new answer."""
        begun = time.perf_counter()
        messages = self._server.reformulate(changes)
        found = self._ranges.match(messages)
        changed = None
        if _VALUE in messages.payload:
            # The message alone says the new answer: gateways update theirs when it arrives.
            new = np.repeat(messages.payload[_VALUE], np.diff(found.offsets))
            outgoing = _assemble(found.ids, new)
        else:
            changed = self._answers.apply(messages, found)
            outgoing = _assemble(changed.numbers, changed.new)
        seconds = time.perf_counter() - begun
        if changed is None:
            changed = self._answers.apply(messages, found)
        by_change = Matches(offsets_of(changed.rows, len(changes)), changed.numbers)
        counts = self._count_by_gateway(by_change)
        traffic = Traffic.from_columns(
            np.repeat(np.arange(len(changes)), np.diff(counts.starts)),
            np.full(len(counts.nodes), self.setting.server, dtype=np.int64),
            counts.nodes,
            messages=counts.counts,
            size=self._sizes(changed, counts),
            step=np.zeros(len(counts.nodes), dtype=np.int64),
            role=MessageRole.SPREAD,
        )
        return Outcome(traffic, changed, seconds, len(outgoing))

    def _sizes(self, changed: AnswerChanges, counts: GatewayCounts) -> IdArray:
        """Return the bytes of all messages from the server to each gateway for each event."""
        model = self.setting.byte_model
        fields = self.queries.notification_fields(changed)
        if not len(fields) or fields.min() == fields.max():
            return counts.counts * model.of(int(fields.max(initial=0)))
        nodes = len(self.setting.overlay)
        lines = np.repeat(np.arange(len(counts.starts) - 1), np.diff(counts.starts)) * nodes + counts.nodes
        order = np.argsort(lines)
        at = np.searchsorted(lines[order], changed.rows * nodes + self.gateways[changed.numbers])
        summed = np.empty(len(lines), dtype=np.int64)
        summed[order] = np.bincount(at, weights=fields, minlength=len(lines))
        return counts.counts * model.header + summed * model.field


def _assemble(subscriptions: IdArray, answers: NDArray[Any]) -> NDArray[np.void]:
    """Return a message to each subscription."""
    outgoing = np.empty(len(subscriptions), dtype=[("subscription", np.int64), ("answer", answers.dtype)])
    outgoing["subscription"], outgoing["answer"] = subscriptions, answers
    return outgoing
