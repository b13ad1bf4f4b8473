"""A server that knows all subscriptions: who is affected, and how many of them each node has (2.1)."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination._kernels.counting import Counted, count_by_node
from tocsin.dissemination.query_kinds.base import Queries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.strategy import StoredState, Strategy
from tocsin.matching import IdArray, Matches
from tocsin.model.subscription import Answer
from tocsin.views.point_listeners import PointListeners


class ServerStrategy(Strategy):
    """The server holds the rows, all subscriptions and their answers."""

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        numbers = np.arange(len(queries))
        self._server = queries.new_server()
        self._answers = queries.new_answers(self._server, numbers)
        self._listeners = PointListeners()
        self._listeners.add(numbers, queries.lows, queries.highs)

    def answer(self, number: int) -> Answer:
        """Return the answer that a subscription was told last."""
        return self.queries.answer(self._answers, number)

    @property
    def stored_state(self) -> StoredState:
        """Return the rows, and the subscriptions with their answers, all at the server."""
        field = self.setting.byte_model.field
        answers = self.queries.answer_fields(self._answers)
        held = field * (3 * self.rows + 3 * len(self.queries) + answers)
        return StoredState(held, 0, 0, "the server the rows, and every subscription's id, range and answer")


def by_node(found: Matches, gateways: IdArray, nodes: int) -> tuple[IdArray, IdArray, IdArray]:
    """Return, per message, the nodes that have subscriptions it found, and how many: starts, nodes, counts."""
    starts = np.zeros(len(found) + 1, dtype=np.int64)
    room = max(min(len(found.ids), nodes * len(found)), 1)
    counted = Counted(starts, *np.empty((2, room), dtype=np.int64))
    total = count_by_node(found.offsets, found.ids, gateways, np.full(nodes, -1, dtype=np.int64), counted)
    return starts, counted.nodes[:total], counted.counts[:total]
