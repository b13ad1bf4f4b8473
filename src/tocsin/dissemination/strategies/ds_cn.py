"""DS-CN: the server's rows are distributed along the diagonal of the content-addressable network (2.3.2)."""

from __future__ import annotations

from typing import ClassVar, Final, cast

import numpy as np
from msgspec.structs import replace

from tocsin.dissemination.ds_cn._kernels.walks import WalkLines
from tocsin.dissemination.ds_cn.reformulation import reformulated
from tocsin.dissemination.ds_cn.rows import heights_of
from tocsin.dissemination.ds_cn.walks import DiagonalRows
from tocsin.dissemination.query_kinds.base import Changes, Queries
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.content_network import disseminate
from tocsin.dissemination.strategies.gateways import Gateways
from tocsin.dissemination.strategies.strategy import Outcome, StoredState, Strategy
from tocsin.dissemination.traffic import Role, Traffic
from tocsin.model.subscription import Answer
from tocsin.views.messages import Messages


class DistributedContentNetwork(Strategy):
    """The owner of (x, x) holds the rows at x, asks along the diagonal how far a change reaches, and reformulates it.

    It knows its own rows and those that were returned to it, no others. A row that moves is the old owner's affair: the
    new one walks as well, and lets everything come back to the old one, who sends all messages of the change.
    """

    name: ClassVar[str] = "DS-CN"
    kinds: ClassVar[frozenset[str]] = frozenset({"min", "max"})

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        points = cast("RangeQueries", queries)  # no other has these kinds
        self._rows = DiagonalRows(setting.can, queries.kind, points.x, points.y)
        self._answers = queries.new_answers(queries.new_server(), np.arange(len(queries)))
        self._gateways = Gateways(setting.can, queries, self.gateways, self._answers)

    def _carry(self, changes: Changes) -> Outcome:
        """Let each change walk along the diagonal and be reformulated; its messages set out after the last reply."""
        walked = self._rows.walk(changes)
        messages = self._messages(reformulated(walked))
        sources = self.setting.can.zones.diagonal[walked.homes.place[messages.change]]
        steps = walked.homes.step[messages.change]
        sent, told = disseminate(self.setting, self.queries, self._gateways, messages, sources, steps=steps)
        return Outcome(Traffic.together([self._walking(walked.lines), sent]), told)

    def _messages(self, messages: Messages) -> Messages:
        return replace(messages, payload={"value": heights_of(self.queries.kind, messages.payload["value"])})

    def _walking(self, lines: WalkLines) -> Traffic:
        owners, sizes = self.setting.can.zones.diagonal, self.setting.byte_model

        def of(role: Role) -> Traffic:
            these = np.flatnonzero(lines.is_reply == (role == Role.REPLY))
            return Traffic.of(
                lines.change[these],
                owners[lines.sender[these]],
                owners[lines.receiver[these]],
                size=sizes.header + sizes.field * lines.fields[these],
                step=lines.step[these],
                role=role,
            )

        return Traffic.together([of(Role.ASK), of(Role.REPLY)])

    def answer(self, number: int) -> Answer:
        """Return a subscription's answer."""
        return self.queries.answer(self._answers, number)

    @property
    def stored_state(self) -> StoredState:
        """Return the rows at the owners on the diagonal, and what each subscription was told last."""
        field = self.setting.byte_model.field
        return StoredState(
            0,
            3 * field * len(self._rows),
            field * len(self.queries),
            "the owners on the diagonal the rows; a subscription its answer",
        )


STRATEGY: Final = DistributedContentNetwork
