"""S-CN: a server that reformulates, and a content-based network that knows whom a message concerns (2.3.1)."""

from __future__ import annotations

import time
from typing import ClassVar, Final

import numpy as np

from tocsin.dissemination.query_kinds.base import Changes, Queries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.content_network import disseminate
from tocsin.dissemination.strategies.gateways import Gateways
from tocsin.dissemination.strategies.strategy import EVERY_KIND, Outcome, StoredState, Strategy
from tocsin.model.subscription import Answer


class ServerContentNetwork(Strategy):
    """The server holds the rows and knows no subscription; its messages go to the owner of their corner, and spread."""

    name: ClassVar[str] = "S-CN"
    kinds: ClassVar[frozenset[str]] = EVERY_KIND

    def __init__(self, setting: Setting, queries: Queries) -> None:
        super().__init__(setting, queries)
        self._server = queries.new_server()
        self._answers = queries.new_answers(self._server, np.arange(len(queries)))
        self._gateways = Gateways(setting.can, queries, self.gateways, self._answers)

    def _carry(self, changes: Changes) -> Outcome:
        """Reformulate changes, and send the messages on; ignorable ones end at the server."""
        begun = time.perf_counter()
        messages = self._server.reformulate(changes)
        seconds = time.perf_counter() - begun
        sources = np.full(len(messages), self.setting.server, dtype=np.int64)
        sent, told = disseminate(self.setting, self.queries, self._gateways, messages, sources)
        return Outcome(sent, told, seconds, len(messages))

    def answer(self, number: int) -> Answer:
        """Return a subscription's answer."""
        return self.queries.answer(self._answers, number)

    @property
    def stored_state(self) -> StoredState:
        """Return the rows at the server, and what each subscription was told last."""
        field = self.setting.byte_model.field
        return StoredState(
            3 * field * self.rows,
            0,
            field * self.queries.answer_fields(self._answers),
            "the server the rows; a subscription its answer",
        )


STRATEGY: Final = ServerContentNetwork
