"""The interface of a strategy: it gets changes, and sees to it that every subscription has the right answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from tocsin.dissemination.byte_model import ROW_FIELDS
from tocsin.dissemination.query_kinds.base import EVERYWHERE, Changes, Queries, StoredRowCount
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.traffic import Traffic
from tocsin.model.errors import TocsinError
from tocsin.model.subscription import Answer
from tocsin.views.aggregates.base import Answers, PointError
from tocsin.views.answer_changes import AnswerChanges

EVERY_KIND: Final = frozenset({"min", "max", "count", "sum", "avg", "distinct", "join"})
EXTREMES: Final = frozenset({"min", "max"})
_PART: Final = 2_000  # changes carried at a time: all their routes are in memory meanwhile


class Outcome(Struct, frozen=True):
    """The outcome of a batch of changes: the messages sent and the answers changed, each change and subscription once."""

    traffic: Traffic
    answer_changes: AnswerChanges  # by the subscriptions' numbers
    server_seconds: float = 0.0  # from the arrival of the updates until all outgoing messages are made
    outgoing: int = 0  # messages that the server made

    def shifted(self, positions: int) -> Outcome:
        """Return the same outcome for changes that stand `positions` later in their batch."""
        traffic, changed = self.traffic, self.answer_changes
        return replace(
            self,
            traffic=replace(traffic, event=traffic.event + positions),
            answer_changes=replace(changed, rows=changed.rows + positions),
        )

    @classmethod
    def together(cls, parts: Sequence[Outcome]) -> Outcome:
        """Return the outcome of consecutive parts of a batch."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            Traffic.concat([part.traffic for part in parts]),
            AnswerChanges.join([part.answer_changes for part in parts]),
            sum(part.server_seconds for part in parts),
            sum(part.outgoing for part in parts),
        )


class StoredState(Struct, frozen=True):
    """The bytes stored at present, by the byte model, and a description."""

    server: int
    network: int  # at all overlay nodes together, without routing tables
    subscribers: int  # at all subscriptions together
    words: str


class Strategy(ABC):
    """One way to get notifications from a table's changes to subscriptions, with all state that its nodes store.

    Subscription s lives at its gateway, the owner of the zone of (low, high).
    """

    name: ClassVar[str]
    kinds: ClassVar[frozenset[str]]  # of queries that it carries
    _answers: Answers  # as gateways know them; a strategy that stores something else overrides `answer`

    def __init__(self, setting: Setting, queries: Queries) -> None:
        if queries.kind not in self.kinds:
            raise TocsinError(
                f"strategy `{self.name}` does not carry `{queries.kind}`; it carries {', '.join(sorted(self.kinds))}"
            )
        self.setting = setting
        self.queries = queries
        self.gateways = setting.can.locate(queries.lows, queries.highs)
        self._row_count = StoredRowCount(queries, EVERYWHERE)

    def publish(self, changes: Changes) -> Outcome:
        """Apply changes in order, and return the messages sent and the answers changed.

        Raises `TocsinError` before applying anything if a change is malformed, and `PointError` at a change whose old
        row is not stored. By then some nodes have applied earlier changes and others have not, so a strategy that
        raised it must be made anew.
        """
        self.queries.check(changes)
        # At least one part, which is empty if there is no change.
        begins = range(0, max(len(changes), 1), _PART)
        parts = [self._publish_part(changes.part(begin, begin + _PART), begin) for begin in begins]
        self._row_count.follow(changes)
        return Outcome.together(parts)

    def _publish_part(self, changes: Changes, begin: int) -> Outcome:
        try:
            outcome = self._publish_checked(changes)
        except PointError as fault:
            raise fault.at(begin + fault.position) from None
        return outcome.shifted(begin) if begin else outcome

    @abstractmethod
    def _publish_checked(self, changes: Changes) -> Outcome:
        """Do the work of `publish` for well-formed changes."""

    @property
    def rows(self) -> int:
        """Return how many rows there are after all changes so far."""
        return self._row_count.rows

    def answer(self, number: int) -> Answer:
        """Return a subscription's answer as its gateway knows it; sets are sorted tuples."""
        return self.queries.answer(self._answers, number)

    @property
    @abstractmethod
    def stored_state(self) -> StoredState:
        """Return the bytes stored at the server, in the network and at subscribers."""

    def _stored(
        self,
        words: str,
        *,
        server_rows: int = 0,
        server: int = 0,
        network_rows: int = 0,
        subscribers: int = 0,
    ) -> StoredState:
        """Return the stored state of so many rows and other fields."""
        field = self.setting.byte_model.field
        row = field * ROW_FIELDS
        return StoredState(row * server_rows + field * server, row * network_rows, field * subscribers, words)
