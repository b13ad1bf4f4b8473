"""A server that knows all subscriptions: it finds the affected ones, and counts them by gateway (2.1)."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination._kernels.gateway_counts import GatewayCounts, count_by_gateway
from tocsin.dissemination.query_kinds.base import Queries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.strategy import StoredState, Strategy
from tocsin.matching import Matches
from tocsin.views.range_index import PointRangeIndex

_SUBSCRIPTION_FIELDS = 3  # its id and both ends of its range


class ServerStrategy(Strategy):
    """The server stores the rows, all subscriptions and their answers."""

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        numbers = np.arange(len(queries))
        self._server = queries.new_server()
        self._answers = queries.new_answers(self._server, numbers)
        self._ranges = PointRangeIndex()
        self._ranges.add(numbers, queries.lows, queries.highs)

    def _count_by_gateway(self, found: Matches) -> GatewayCounts:
        """Return, per message, the gateways of the subscriptions found, and how many live at each."""
        nodes = len(self.setting.overlay)
        starts = np.zeros(len(found) + 1, dtype=np.int64)
        room = max(min(len(found.ids), nodes * len(found)), 1)
        counts = GatewayCounts(starts, *np.empty((2, room), dtype=np.int64))
        lines = np.full(nodes, -1, dtype=np.int64)
        total = count_by_gateway(found.offsets, found.ids, self.gateways, lines, counts)
        return GatewayCounts(starts, counts.nodes[:total], counts.counts[:total])

    @property
    def stored_state(self) -> StoredState:
        """Return the rows, and the subscriptions with their answers, all at the server."""
        subscriptions = _SUBSCRIPTION_FIELDS * len(self.queries) + self.queries.answer_fields(self._answers)
        return self._stored(
            "the server the rows, and every subscription's id, range and answer",
            server_rows=self.rows,
            server=subscriptions,
        )
