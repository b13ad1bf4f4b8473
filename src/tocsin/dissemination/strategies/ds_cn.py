"""DS-CN: the server's rows are distributed along the diagonal of the content-addressable network (2.3.2)."""

from __future__ import annotations

from typing import ClassVar, cast

import numpy as np
from msgspec.structs import replace

from tocsin.dissemination.ds_cn._kernels.rows import DiagonalMessages
from tocsin.dissemination.ds_cn.server import DistributedServer, heights_of, reformulate
from tocsin.dissemination.query_kinds.base import Changes, Queries
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.content_network import Gateways, disseminate
from tocsin.dissemination.strategies.strategy import EXTREMES, Outcome, StoredState, Strategy
from tocsin.dissemination.traffic import MessageRole, Traffic
from tocsin.matching import IdArray


class DistributedContentNetwork(Strategy):
    """The owner of (x, x) stores the rows at x, walks along the diagonal to find the reach of a change, and reformulates it.

    It knows its own rows and those returned to it, no others. The old owner coordinates a move: the new owner walks as
    well, all replies go to the old one, and it sends the messages of the change.
    """

    name: ClassVar[str] = "DS-CN"
    kinds: ClassVar[frozenset[str]] = EXTREMES

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        points = cast("RangeQueries", queries)  # no other has these kinds
        self._server = DistributedServer(setting.can, queries.kind, points.x, points.y)
        self._answers = queries.new_answers(queries.new_server(), np.arange(len(queries)))
        self._gateways = Gateways(setting.can, queries, self.gateways, self._answers)

    def _publish_checked(self, changes: Changes) -> Outcome:
        """Walk the diagonal for each change and reformulate it; its messages depart after the last reply."""
        walked = self._server.walk(changes)
        heights = reformulate(walked)
        value = heights_of(self.queries.kind, heights.payload["value"])
        messages = replace(heights, payload={"value": value})
        owners = self.setting.can.zones.diagonal
        sources = owners[walked.coordinators.position[messages.change]]
        steps = walked.coordinators.step[messages.change]
        traffic, changed = disseminate(
            self.setting, self.queries, self._gateways, messages, sources, steps=steps
        )
        asked = walked.messages
        asked = asked._replace(sender=owners[asked.sender], receiver=owners[asked.receiver])
        walking = diagonal_traffic(self.setting, asked, asked.cause, asked.step)
        return Outcome(Traffic.concat([walking, traffic]), changed)

    @property
    def stored_state(self) -> StoredState:
        """Return the rows at the owners on the diagonal, and the last answer of each subscription."""
        return self._stored(
            "the owners on the diagonal the rows; a subscription its answer",
            network_rows=len(self._server),
            subscribers=len(self.queries),
        )


def diagonal_traffic(
    setting: Setting, messages: DiagonalMessages, events: IdArray, steps: IdArray
) -> Traffic:
    """Return the traffic of requests and replies along the diagonal, given each message's event and step."""
    return Traffic.from_columns(
        events,
        messages.sender,
        messages.receiver,
        size=setting.byte_model.of(messages.fields),
        step=steps,
        role=np.where(messages.is_reply, MessageRole.REPLY, MessageRole.ASK).astype(np.int8),
    )
