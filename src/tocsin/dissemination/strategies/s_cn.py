"""S-CN: a server that reformulates, and a content-based network that finds the affected subscriptions (2.3.1)."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from tocsin.dissemination.query_kinds.base import Changes, Queries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.content_network import Gateways, disseminate
from tocsin.dissemination.strategies.strategy import EVERY_KIND, Outcome, StoredState, Strategy


class ServerContentNetwork(Strategy):
    """The server stores the rows and no subscription; a message is routed to the owner of its corner and spreads."""

    name: ClassVar[str] = "S-CN"
    kinds: ClassVar[frozenset[str]] = EVERY_KIND

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        self._server = queries.new_server()
        self._answers = queries.new_answers(self._server, np.arange(len(queries)))
        self._gateways = Gateways(setting.can, queries, self.gateways, self._answers)

    def _publish_checked(self, changes: Changes) -> Outcome:
        """Reformulate changes, which alone is timed, and disseminate the messages; ignorable changes end at the server."""
        begun = time.perf_counter()
        messages = self._server.reformulate(changes)
        seconds = time.perf_counter() - begun
        sources = np.full(len(messages), self.setting.server, dtype=np.int64)
        traffic, changed = disseminate(self.setting, self.queries, self._gateways, messages, sources)
        return Outcome(traffic, changed, seconds, len(messages))

    @property
    def stored_state(self) -> StoredState:
        """Return the rows at the server, and the last answer of each subscription."""
        answers = self.queries.answer_fields(self._answers)
        return self._stored(
            "the server the rows; a subscription its answer", server_rows=self.rows, subscribers=answers
        )
