"""What all subscriptions of a simulation ask, each about its own range."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.model.subscription import Answer
from tocsin.views.changes import Floats
from tocsin.views.kinds.kind import Answers, Reformulator, Told
from tocsin.views.messages import Messages

Changes: TypeAlias = Any
"""A batch of changes with a length, of the sort that its queries knows: `PointChanges` where ranges decide."""


class Ends(NamedTuple):
    """The lower ends of ranges, and their upper ends, each in their own order: enough to count what all ranges hold."""

    lows: Floats
    highs: Floats

    @classmethod
    def of(cls, lows: Floats, highs: Floats) -> Ends:
        """Return the ends of some ranges."""
        return cls(np.sort(lows), np.sort(highs))

    def holding(self, x: Floats) -> int:
        """Return how often a number, NaN apart, is within a range, both ends included."""
        x = x[~np.isnan(x)]
        begun, ended = np.searchsorted(self.lows, x, side="right"), np.searchsorted(self.highs, x)
        return int((begun - ended).sum())


EVERYWHERE: Final = Ends(np.array([-np.inf]), np.array([np.inf]))


class Relaxed(Struct, frozen=True):
    """Where changes have to go if nobody knows which answers they alter: each to all subscriptions in some rectangles."""

    messages: Messages  # without a payload; those of one change may overlap
    fields: int  # that such a message has


class Queries(ABC):
    """A kind of view, the rows it begins with, and a range for each subscription, both ends included."""

    kind: str
    lows: Floats
    highs: Floats

    def __len__(self) -> int:
        return len(self.lows)

    @abstractmethod
    def check(self, changes: Changes) -> None:
        """Raise `TocsinError` at a change that is none of such rows, naming its place."""

    # the server's side, and the subscribers' side

    @abstractmethod
    def new_server(self) -> Reformulator:
        """Return the server's side with all rows."""

    @abstractmethod
    def no_answers(self) -> Answers:
        """Return the subscribers' side before any has begun; their places are the subscriptions' numbers."""

    @abstractmethod
    def begin(self, answers: Answers, server: Reformulator, numbers: IdArray) -> None:
        """Let subscriptions begin with what a server's present rows answer."""

    def new_answers(self, server: Reformulator, numbers: IdArray) -> Answers:
        """Return the side of some subscriptions, as a server's present rows begin it."""
        answers = self.no_answers()
        self.begin(answers, server, numbers)
        return answers

    @abstractmethod
    def answer(self, answers: Answers, number: int) -> Answer:
        """Return a subscription's answer: null, a number, or a sorted tuple."""

    # without a server

    @abstractmethod
    def relaxed(self, changes: Changes) -> Relaxed:
        """Return where changes have to go as they are."""

    @abstractmethod
    def new_replica(self, low: float, high: float) -> Reformulator:
        """Return the side of a node that keeps all rows that matter to ranges within [low, high]."""

    @abstractmethod
    def part(self, changes: Changes, places: IdArray, low: float, high: float) -> tuple[Changes, IdArray]:
        """Return those of the changes at some places that concern a replica, as it sees them, and their places."""

    @abstractmethod
    def kept(self, ends: Ends) -> int:
        """Return how many of the first rows each of some ranges would keep, all together."""

    @abstractmethod
    def gained(self, changes: Changes, ends: Ends) -> int:
        """Return how many more some ranges would keep after changes, all together; less than 0 if they lose some."""

    # bytes

    @abstractmethod
    def fields(self, messages: Messages) -> IdArray:
        """Return how many fields each reformulated message has."""

    @abstractmethod
    def told_fields(self, told: Told) -> IdArray:
        """Return how many fields a message to each subscription has that tells it what changed, and nobody else."""

    @abstractmethod
    def answer_fields(self, answers: Answers) -> int:
        """Return how many fields all subscriptions' present answers have together."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Return how many rows there are at first."""


class RowCount:
    """How many rows some ranges keep all together, as the rows change."""

    def __init__(self, queries: Queries, ends: Ends) -> None:
        self._question, self._ends = queries, ends
        self.rows = queries.kept(ends)

    def follow(self, changes: Changes) -> None:
        """Count what changes make of them."""
        self.rows += self._question.gained(changes, self._ends)


def check_ranges(lows: Floats, highs: Floats) -> None:
    """Raise `TocsinError` at a subscription whose range is none."""
    if len(lows) != len(highs):
        raise TocsinError(
            f"{len(lows)} lower and {len(highs)} upper ends; give one of each for every subscription"
        )
    if len(wrong := np.flatnonzero(~(np.isfinite(lows) & np.isfinite(highs) & (lows <= highs)))):
        at = int(wrong[0])
        raise TocsinError(
            f"subscription {at}: [{lows[at]}, {highs[at]}] is no range; both ends are finite, the lower one first"
        )
