"""What every strategy is: it gets changes, and sees to it that every subscription has the right answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tocsin.dissemination.query_kinds.base import EVERYWHERE, Changes, Queries, RowCount
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.traffic import Traffic
from tocsin.model.errors import TocsinError
from tocsin.model.subscription import Answer
from tocsin.views.kinds.kind import PointError, Told

EVERY_KIND: Final = frozenset({"min", "max", "count", "sum", "avg", "distinct", "join"})
_AT_ONCE: Final = 2_000  # changes that are carried at a time: all their ways are held meanwhile
NOBODY: Final = Told(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))


class Outcome(Struct, frozen=True):
    """What came of a batch of changes: the messages sent, and the answers that changed, each change and subscription once."""

    traffic: Traffic
    answer_changes: Told  # `places` are the subscriptions' numbers
    server_seconds: float = 0.0  # from the arrival of the updates to all outgoing messages being made
    outgoing: int = 0  # messages that the server made

    def later(self, places: int) -> Outcome:
        """Return the same of changes that come so many places later."""
        traffic, changed = self.traffic, self.answer_changes
        return replace(
            self,
            traffic=replace(traffic, event=traffic.event + places),
            answer_changes=replace(changed, change=changed.change + places),
        )

    @classmethod
    def together(cls, parts: Sequence[Outcome]) -> Outcome:
        """Return what came of changes that were carried in several parts, one after another."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            Traffic.together([part.traffic for part in parts]),
            Told.together([part.answer_changes for part in parts]),
            sum(part.server_seconds for part in parts),
            sum(part.outgoing for part in parts),
        )


class StoredState(Struct, frozen=True):
    """The bytes that are kept at present, by the byte model, and in words of what."""

    server: int
    network: int  # at all overlay nodes together, routing tables apart
    subscribers: int  # at all subscriptions together
    words: str


class Strategy(ABC):
    """One way to get notifications from a table's changes to subscriptions, with all state that its nodes keep.

    It is made with a queries, whose rows and subscriptions it places; subscription s lives at its gateway, the owner
    of the zone of (low, high).
    """

    name: ClassVar[str]
    kinds: ClassVar[frozenset[str]]  # of questions that it takes

    def __init__(self, setting: Setting, queries: Queries) -> None:
        if queries.kind not in self.kinds:
            raise TocsinError(
                f"strategy `{self.name}` does not carry `{queries.kind}`; it carries {', '.join(sorted(self.kinds))}"
            )
        self.setting = setting
        self.queries = queries
        self.gateways = setting.can.locate(queries.lows, queries.highs)
        self._held = RowCount(queries, EVERYWHERE)

    def publish(self, changes: Changes) -> Outcome:
        """Make changes one after another, and return what was sent and told because of them.

        Raises `TocsinError` before anything is made if one is no change of such rows, and `PointError` at one whose old
        row is not held. Some nodes have followed the changes before it by then, and others have not: no answer holds any
        more, and the strategy is to be made anew.
        """
        self.queries.check(changes)
        # At least one part, which is empty if there is no change.
        begins = range(0, max(len(changes), 1), _AT_ONCE)
        parts = [self._part(changes.part(begin, begin + _AT_ONCE), begin) for begin in begins]
        self._held.follow(changes)
        return Outcome.together(parts)

    def _part(self, changes: Changes, begin: int) -> Outcome:
        """Make some of the changes, the first of them at a place."""
        try:
            outcome = self._carry(changes)
        except PointError as fault:
            raise fault.at(begin + fault.place) from None
        return outcome.later(begin) if begin else outcome

    @abstractmethod
    def _carry(self, changes: Changes) -> Outcome:
        """Do what `publish` says, with changes that are in order."""

    @property
    def rows(self) -> int:
        """Return how many rows there are after all changes so far."""
        return self._held.rows

    @abstractmethod
    def answer(self, number: int) -> Answer:
        """Return what a subscription's gateway knows as its answer; sets are sorted tuples."""

    @property
    @abstractmethod
    def stored_state(self) -> StoredState:
        """Return what is kept, and where."""
