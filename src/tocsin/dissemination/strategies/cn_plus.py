"""CN+: CN with a cutoff for decreasing updates; a subscription stores one row, its minimum (2.2.2)."""

from __future__ import annotations

from typing import ClassVar, Final, cast

import numpy as np

from tocsin.dissemination.byte_model import ROW_FIELDS
from tocsin.dissemination.can.state import SpreadTrees
from tocsin.dissemination.cn_plus.broadcasts import Broadcast, SubscriptionMinima
from tocsin.dissemination.ds_cn.server import heights_of
from tocsin.dissemination.query_kinds.base import Changes, Queries
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.content_network import route_traffic, spread_traffic
from tocsin.dissemination.strategies.ds_cn import diagonal_traffic
from tocsin.dissemination.strategies.strategy import EXTREMES, Outcome, StoredState, Strategy
from tocsin.dissemination.traffic import MessageRole, Traffic
from tocsin.model.subscription import Answer
from tocsin.views.answer_changes import AnswerChanges, number_answer
from tocsin.views.changes import Floats

_TAG_FIELDS: Final = 2  # the cutoff on both sides
_REQUEST_FIELDS: Final = 4  # the range asked for, x, the gateway


class CutoffContentNetwork(Strategy):
    """A gateway that loses the minimum of a subscription requests rows from their owners on the diagonal.

    Only a decrease at the same x is cut off; any other change goes to all zones of its quadrant, and a move to those of
    the old and the new one. For `max`, a decrease is a y that rises.
    """

    name: ClassVar[str] = "CN+"
    kinds: ClassVar[frozenset[str]] = EXTREMES

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        points = cast("RangeQueries", queries)  # no other has these kinds
        self._minima = SubscriptionMinima(setting.can, points, self.gateways)

    def _publish_checked(self, changes: Changes) -> Outcome:
        """Broadcast changes in order, and let gateways request the rows that they lost."""
        broadcast = self._minima.apply(changes)
        traffic = Traffic.concat([self._spread_traffic(broadcast), *self._request_traffic(broadcast)])
        changed = broadcast.answers
        return Outcome(
            traffic,
            AnswerChanges(
                changed.change.copy(),  # the next batch overwrites it
                self._minima.subscriptions[changed.position],
                self._to_answers(changed.old),
                self._to_answers(changed.new),
            ),
        )

    def _to_answers(self, heights: Floats) -> Floats:
        answers = heights_of(self.queries.kind, heights)
        answers[np.isinf(answers)] = np.nan
        return answers

    def _spread_traffic(self, broadcast: Broadcast) -> Traffic:
        """Return the traffic over quadrants up to the cutoff; decreases carry a tag."""
        reached, trees = broadcast.is_reached, broadcast.trees
        before = np.concatenate([[0], np.cumsum(reached)])
        pruned = SpreadTrees(before[trees.starts], *(column[reached] for column in trees[1:]))
        fields = np.where(broadcast.is_decrease, ROW_FIELDS + _TAG_FIELDS, ROW_FIELDS)
        return spread_traffic(self.setting, broadcast.changes, pruned, fields)

    def _request_traffic(self, broadcast: Broadcast) -> tuple[Traffic, Traffic]:
        """Return the requests on their way to the owner of x, then along the diagonal with the replies."""
        requests, messages = broadcast.requests, broadcast.messages
        routes = self.setting.can.route(requests.gateway, requests.x, requests.x)
        routed = route_traffic(
            self.setting, requests.change, routes, _REQUEST_FIELDS, steps=requests.step, role=MessageRole.ASK
        )
        arrivals = requests.step + np.diff(routes.starts) - 1
        steps = arrivals[messages.cause] + messages.step
        return routed, diagonal_traffic(self.setting, messages, requests.change[messages.cause], steps)

    def answer(self, number: int) -> Answer:
        """Return the y of a subscription's minimum row."""
        height = self._minima.height(number)
        answer = heights_of(self.queries.kind, np.array([height]))
        return None if np.isinf(height) else number_answer(float(answer[0]))

    @property
    def stored_state(self) -> StoredState:
        """Return the rows at the owners on the diagonal, and x and y of one row for each subscription."""
        return self._stored(
            "the owners on the diagonal the rows; a subscription x and y of its minimum",
            network_rows=self._minima.rows,
            subscribers=2 * len(self.queries),
        )
