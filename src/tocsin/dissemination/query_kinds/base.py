"""The queries of all subscriptions in a simulation: one kind of view, a range for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.model.subscription import Answer
from tocsin.views.aggregates.base import Answers, Reformulator
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages

Changes: TypeAlias = Any
"""A batch of changes with a length, of the type that its queries take: `PointChanges` or `JoinChanges`."""


class RangeEnds(NamedTuple):
    """The lower and the upper ends of ranges, each sorted: enough to count how many ranges contain a number."""

    lows: Floats
    highs: Floats

    @classmethod
    def of(cls, lows: Floats, highs: Floats) -> RangeEnds:
        """Return the ends of some ranges."""
        return cls(np.sort(lows), np.sort(highs))

    def count_containing(self, x: Floats) -> int:
        """Return the number of pairs of a number, NaN excepted, and a range that contains it, both ends included."""
        x = x[~np.isnan(x)]
        begun, ended = np.searchsorted(self.lows, x, side="right"), np.searchsorted(self.highs, x)
        return int((begun - ended).sum())


EVERYWHERE: Final = RangeEnds(np.array([-np.inf]), np.array([np.inf]))


class Relaxed(Struct, frozen=True):
    """The rectangles of subscriptions that a change goes to if no node knows the affected ones."""

    messages: Messages  # without a payload; those of one change may overlap
    fields: int  # of such a message


class Queries(ABC):
    """A kind of view, the initial rows, and a range for each subscription, both ends included."""

    kind: str
    lows: Floats
    highs: Floats

    def __len__(self) -> int:
        return len(self.lows)

    @abstractmethod
    def check(self, changes: Changes) -> None:
        """Raise `TocsinError` at a malformed change, naming its position."""

    # the server's side, and the subscribers' side

    @abstractmethod
    def new_server(self) -> Reformulator:
        """Return a server with all initial rows."""

    @abstractmethod
    def empty_answers(self) -> Answers:
        """Return the subscribers' side with no subscription yet; slots are the subscriptions' numbers."""

    def begin(self, answers: Answers, server: Reformulator, numbers: IdArray) -> None:
        """Give subscriptions their answers from a server's present rows."""
        answers.begin(numbers, server.present(self.lows[numbers], self.highs[numbers]))

    def new_answers(self, server: Reformulator, numbers: IdArray) -> Answers:
        """Return the subscribers' side with the answers of some subscriptions from a server's present rows."""
        answers = self.empty_answers()
        self.begin(answers, server, numbers)
        return answers

    @abstractmethod
    def answer(self, answers: Answers, number: int) -> Answer:
        """Return a subscription's answer: null, a number, or a sorted tuple."""

    # without a server

    @abstractmethod
    def relaxed(self, changes: Changes) -> Relaxed:
        """Return where unreformulated changes go."""

    @abstractmethod
    def new_replica(self, low: float, high: float) -> Reformulator:
        """Return a replica of all rows that matter to ranges within [low, high]."""

    @abstractmethod
    def replica_changes(
        self, changes: Changes, positions: IdArray, low: float, high: float
    ) -> tuple[Changes, IdArray]:
        """Return the changes, among those at some positions, that a replica of [low, high] sees, and their positions.

        A row that leaves the range is removed there, one that enters it is added.
        """

    @abstractmethod
    def stored_rows(self, ends: RangeEnds) -> int:
        """Return the sum over ranges of the initial rows that each stores."""

    @abstractmethod
    def gained_rows(self, changes: Changes, ends: RangeEnds) -> int:
        """Return how many more rows all ranges together store after changes; negative if they lose some."""

    # bytes

    @abstractmethod
    def fields(self, messages: Messages) -> IdArray:
        """Return how many fields each reformulated message has."""

    @abstractmethod
    def notification_fields(self, changed: AnswerChanges) -> IdArray:
        """Return how many fields the notification of each changed answer to its one subscription has."""

    @abstractmethod
    def answer_fields(self, answers: Answers) -> int:
        """Return how many fields the present answers of all subscriptions have together."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Return how many initial rows there are."""


class StoredRowCount:
    """The number of rows that some ranges store together, as the rows change."""

    def __init__(self, queries: Queries, ends: RangeEnds) -> None:
        self._queries, self._ends = queries, ends
        self.rows = queries.stored_rows(ends)

    def follow(self, changes: Changes) -> None:
        """Update the number after changes."""
        self.rows += self._queries.gained_rows(changes, self._ends)


def check_ranges(lows: Floats, highs: Floats) -> None:
    """Raise `TocsinError` at a subscription whose range is none."""
    if len(lows) != len(highs):
        raise TocsinError(f"{len(lows)} lower and {len(highs)} upper ends; every subscription needs both")
    if len(wrong := np.flatnonzero(~(np.isfinite(lows) & np.isfinite(highs) & (lows <= highs)))):
        at = int(wrong[0])
        raise TocsinError(
            f"subscription {at}: [{lows[at]}, {highs[at]}] is no range; both ends are finite, the lower one first"
        )
