"""CN+: as CN, but a row that falls goes no further than it may alter anything, and subscriptions keep one row (2.2.2)."""

from __future__ import annotations

from typing import ClassVar, Final, cast

import numpy as np

from tocsin.dissemination.can.state import Spread
from tocsin.dissemination.diagonal.rows import heights_of
from tocsin.dissemination.minima.passes import Minima, Passed
from tocsin.dissemination.questions.question import Changes, Question
from tocsin.dissemination.questions.ranges import RangeQuestion
from tocsin.dissemination.sent import Role, Sent
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.gateways import spread_sent
from tocsin.dissemination.strategies.reformulated import route_sent
from tocsin.dissemination.strategies.strategy import Holdings, Outcome, Strategy
from tocsin.model.subscription import Answer
from tocsin.views.changes import Floats
from tocsin.views.kinds.kind import Told, whole

_RAW: Final = 3  # the row's id, x, y
_TAG: Final = 2  # where a row that falls is cut off, on both sides
_QUESTION: Final = 4  # the range asked about, x, the gateway


class Cutoff(Strategy):
    """A subscription keeps its minimum row; whoever loses it asks the owners on the diagonal, who hold the rows.

    A row that falls without moving is cut off; every other change goes to all zones of its quadrant, of the old and of the
    new one if it moves. For `max`, what falls is a row whose y rises.
    """

    name: ClassVar[str] = "CN+"
    kinds: ClassVar[frozenset[str]] = frozenset({"min", "max"})

    def __init__(self, setting: Setting, question: Question) -> None:
        super().__init__(setting, question)
        points = cast("RangeQuestion", question)  # no other has these kinds
        self._minima = Minima(setting.can, points, self.gateways)

    def _carry(self, changes: Changes) -> Outcome:
        """Let changes pass through the network one after another, and gateways ask for what they lost."""
        passed = self._minima.follow(changes)
        sent = Sent.together([self._spreading(passed), *self._asking(passed)])
        heard = passed.told
        told = Told(
            heard.change.copy(),  # what follows is written over it
            self._minima.numbers[heard.place],
            self._answers(heard.old),
            self._answers(heard.new),
        )
        return Outcome(sent, told)

    def _answers(self, heights: Floats) -> Floats:
        answers = heights_of(self.question.kind, heights)
        answers[np.isinf(answers)] = np.nan
        return answers

    def _spreading(self, passed: Passed) -> Sent:
        """Return what is sent over quadrants, as far as it gets; what falls carries its tag."""
        kept, whole_way = passed.is_reached, passed.spread
        before = np.concatenate([[0], np.cumsum(kept)])
        spread = Spread(
            before[whole_way.starts],
            whole_way.zones[kept],
            whole_way.parents[kept],
            whole_way.depths[kept],
        )
        fields = np.where(passed.is_cut, _RAW + _TAG, _RAW)
        return spread_sent(self.setting, passed.changes, spread, fields)

    def _asking(self, passed: Passed) -> list[Sent]:
        """Return the questions on their way to the owner of x, then along the diagonal, and the replies."""
        sizes, asked, lines = self.setting.sizes, passed.asked, passed.lines
        ways = self.setting.can.route(asked.gateway, asked.x, asked.x)
        fields = np.full(len(asked.x), _QUESTION, dtype=np.int64)
        routed = route_sent(self.setting, asked.change, ways, fields, steps=asked.step, role=Role.ASK)
        arrived = asked.step + np.diff(ways.starts) - 1
        along = [
            Sent.of(
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
            None if np.isinf(height) else whole(float(heights_of(self.question.kind, np.array([height]))[0]))
        )

    @property
    def holdings(self) -> Holdings:
        """Return the rows at the owners on the diagonal, and x and y of one row for each subscription."""
        field = self.setting.sizes.field
        return Holdings(
            0,
            3 * field * self._minima.rows,
            2 * field * len(self.question),
            "the owners on the diagonal the rows; a subscription x and y of its minimum",
        )


STRATEGY: Final = Cutoff
