"""What every kind of view is: how the server reformulates a change, and what a subscriber makes of the messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching import IdArray, Matches
from tocsin.model.errors import TocsinError
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.messages import Messages

Present: TypeAlias = Mapping[str, NDArray[Any]]
"""What a subscriber begins with, as columns that a kind's two sides have agreed on."""


class PointError(TocsinError):
    """A change, named by its place, begins at a point that is not held."""

    def __init__(self, place: int, told: str) -> None:
        super().__init__(f"change {place}{told}")
        self.place = place
        self._told = told

    def at(self, place: int) -> PointError:
        """Return the same error of a change at another place: whoever was given a part of them counts anew."""
        return PointError(place, self._told)


class Reads(StrEnum):
    """What a kind makes of the aggregated term."""

    NUMBER = "number"  # y is the number; a row without one is no point
    PRESENCE = "presence"  # y is 0; a row without a value is no point, unless rows are counted
    VALUE = "value"  # y is a code that stands for the value, from 0; equal values have the same


class Reformulator(ABC):
    """The server's side: holds the points of a table, and knows no subscription."""

    @abstractmethod
    def load(self, x: Floats, y: Floats) -> None:
        """Take all points at once, in the place of those that were held; none is NaN."""

    @abstractmethod
    def reformulate(self, changes: PointChanges) -> Messages:
        """Make the changes one after another, and return the messages that tell of them.

        Raises `PointError` at one that begins at a point that is not held; those before it are made.
        """

    @abstractmethod
    def present(self, lows: Floats, highs: Floats) -> Present:
        """Return what subscribers of these ranges, both ends included, begin with."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return the bytes of all that is held."""


class Answers(ABC):
    """The subscribers' side: by place, what each was told last. A place is given again after `end`."""

    @abstractmethod
    def begin(self, places: IdArray, present: Present) -> None:
        """Let subscriptions begin with what the server told them."""

    @abstractmethod
    def end(self, places: IdArray) -> None:
        """Let go of what is kept for subscriptions."""

    @abstractmethod
    def tell(self, messages: Messages, found: Matches) -> AnswerChanges:
        """Return what changes for the subscriptions that hear each message; `found` are their places."""

    @abstractmethod
    def answer(self, place: int) -> float | tuple[int, ...] | None:
        """Return a subscription's answer: a number, null, or of a set the sorted codes."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return the bytes of all that is kept, as nearly as can be told."""


class Kind(Struct, frozen=True):
    """One kind of view by its name in the language: what it reads, and what makes its two sides."""

    name: str
    reads: Reads
    reformulator: Callable[[], Reformulator]
    answers: Callable[[], Answers]


def absent(changes: PointChanges, place: int) -> PointError:
    """Return the error that tells of a change whose old point is not held."""
    point = (float(changes.old_x[place]), float(changes.old_y[place]))
    return PointError(
        place,
        f": its old point {point} is not held; the changes before it are made. "
        f"Begin anew, and load the table's points",
    )
