"""CN+: as CN, but a row that falls goes no further than it may alter anything, and subscriptions keep one row (2.2.2)."""

from __future__ import annotations

from typing import ClassVar, Final, cast

import numpy as np

from tocsin.dissemination.can.state import SpreadTrees
from tocsin.dissemination.cn_plus.broadcasts import Minima, Passed
from tocsin.dissemination.ds_cn.rows import heights_of
from tocsin.dissemination.query_kinds.base import Changes, Queries
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.content_network import route_traffic
from tocsin.dissemination.strategies.gateways import spread_traffic
from tocsin.dissemination.strategies.strategy import Outcome, StoredState, Strategy
from tocsin.dissemination.traffic import Role, Traffic
from tocsin.model.subscription import Answer
from tocsin.views.changes import Floats
from tocsin.views.kinds.kind import Told, whole

_RAW: Final = 3  # the row's id, x, y
_TAG: Final = 2  # where a row that falls is cut off, on both sides
_QUESTION: Final = 4  # the range asked about, x, the gateway


class CutoffContentNetwork(Strategy):
    """A subscription keeps its minimum row; whoever loses it asks the owners on the diagonal, who hold the rows.

    A row that falls without moving is cut off; every other change goes to all zones of its quadrant, of the old and of the
    new one if it moves. For `max`, what falls is a row whose y rises.
    """

    name: ClassVar[str] = "CN+"
    kinds: ClassVar[frozenset[str]] = frozenset({"min", "max"})

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        points = cast("RangeQueries", queries)  # no other has these kinds
        self._minima = Minima(setting.can, points, self.gateways)

    def _carry(self, changes: Changes) -> Outcome:
        """Let changes pass through the network one after another, and gateways ask for what they lost."""
        passed = self._minima.follow(changes)
        sent = Traffic.together([self._spreading(passed), *self._asking(passed)])
        heard = passed.told
        told = Told(
            heard.change.copy(),  # what follows is written over it
            self._minima.numbers[heard.place],
            self._answers(heard.old),
            self._answers(heard.new),
        )
        return Outcome(sent, told)

    def _answers(self, heights: Floats) -> Floats:
        answers = heights_of(self.queries.kind, heights)
        answers[np.isinf(answers)] = np.nan
        return answers

    def _spreading(self, passed: Passed) -> Traffic:
        """Return what is sent over quadrants, as far as it gets; what falls carries its tag."""
        kept, whole_way = passed.is_reached, passed.spread
        before = np.concatenate([[0], np.cumsum(kept)])
        spread = SpreadTrees(
            before[whole_way.starts],
            whole_way.zones[kept],
            whole_way.parents[kept],
            whole_way.depths[kept],
        )
        fields = np.where(passed.is_cut, _RAW + _TAG, _RAW)
        return spread_traffic(self.setting, passed.changes, spread, fields)

    def _asking(self, passed: Passed) -> list[Traffic]:
        """Return the questions on their way to the owner of x, then along the diagonal, and the replies."""
        sizes, asked, lines = self.setting.byte_model, passed.asked, passed.lines
        ways = self.setting.can.route(asked.gateway, asked.x, asked.x)
        fields = np.full(len(asked.x), _QUESTION, dtype=np.int64)
        routed = route_traffic(self.setting, asked.change, ways, fields, steps=asked.step, role=Role.ASK)
        arrived = asked.step + np.diff(ways.starts) - 1
        along = [
            Traffic.of(
                asked.change[lines.asked[these]],
                lines.sender[these],
                lines.receiver[these],
                size=sizes.header + sizes.field * lines.fields[these],
                step=arrived[lines.asked[these]] + lines.step[these],
                role=role,
            )
            for role, these in (
                (Role.ASK, np.flatnonzero(~lines.is_reply)),
                (Role.REPLY, np.flatnonzero(lines.is_reply)),
            )
        ]
        return [routed, *along]

    def answer(self, number: int) -> Answer:
        """Return the y of the row that a subscription keeps."""
        height = self._minima.height(number)
        return (
            None if np.isinf(height) else whole(float(heights_of(self.queries.kind, np.array([height]))[0]))
        )

    @property
    def stored_state(self) -> StoredState:
        """Return the rows at the owners on the diagonal, and x and y of one row for each subscription."""
        field = self.setting.byte_model.field
        return StoredState(
            0,
            3 * field * self._minima.rows,
            2 * field * len(self.queries),
            "the owners on the diagonal the rows; a subscription x and y of its minimum",
        )


STRATEGY: Final = CutoffContentNetwork
