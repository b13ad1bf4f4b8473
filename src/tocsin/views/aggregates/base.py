"""An aggregate, kept by range or by row.

By range (database/network interface, §2 and §3): the server's side, a `Reformulator`, turns a change into messages that name
the ranges they concern, and the subscribers' side, `Answers`, applies the messages to its answers. Neither knows the other.

By row: a `RowAggregate` gets the rows that are added to a subscription and removed from it, and keeps the state of its answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching import IdArray, Matches
from tocsin.model.errors import TocsinError
from tocsin.model.subscription import Answer
from tocsin.views.answer_changes import AnswerChanges, ChangeLog
from tocsin.views.changes import Floats, PointChanges, Row
from tocsin.views.compiled import CompiledRowView
from tocsin.views.messages import Messages

Present: TypeAlias = Mapping[str, NDArray[Any]]
"""The first answers of new subscriptions, as columns that both sides of an aggregate agree on."""

RowKey: TypeAlias = tuple[int, ...]
"""The order in which a row came to its table, or both orders of a pair of rows; it stays while the row does."""

Read = TypeVar("Read")
State = TypeVar("State")


class PointError(TocsinError):
    """A change, named by its position, has an old point that is not stored."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"change {position}{reason}")
        self.position = position
        self._reason = reason

    def at(self, position: int) -> PointError:
        """Return the same error of a change at another position, for callers that passed on some of the changes."""
        return PointError(position, self._reason)


class Reads(StrEnum):
    """How an aggregate reads the y of a point."""

    NUMBER = "number"  # y is the number; a row without one is no point
    PRESENCE = "presence"  # y is 0; a row without a value is no point, unless rows are counted
    VALUE = "value"  # y is a code that stands for the value, from 0; equal values have the same


class Reformulator(Protocol):
    """The server's side: holds the points of a table, and knows no subscription."""

    def load(self, x: Floats, y: Floats) -> None:
        """Replace all points; none is NaN."""

    def reformulate(self, changes: PointChanges) -> Messages:
        """Make the changes one after another, and return their messages.

        Raises `PointError` at a change that has an old point that is not stored; those before it are made.
        """

    def present(self, lows: Floats, highs: Floats) -> Present:
        """Return the first answers of subscriptions to these ranges, both ends included."""

    @property
    def nbytes(self) -> int:
        """Return the bytes of all points and indexes."""


class Answers(Protocol):
    """The subscribers' side: the last answer of each subscription, by slot. A slot is used again after `end`."""

    def begin(self, slots: IdArray, present: Present) -> None:
        """Add subscriptions with their first answers."""

    def end(self, slots: IdArray) -> None:
        """Remove subscriptions."""

    def apply(self, messages: Messages, matches: Matches) -> AnswerChanges:
        """Apply each message to the subscriptions that match it, and return the answers that change, by slot."""

    def answer(self, slot: int) -> float | tuple[int, ...] | None:
        """Return a subscription's answer: a number, null, or of a set the sorted codes."""

    @property
    def nbytes(self) -> int:
        """Return the approximate bytes of all answers."""


class RowAggregate(ABC, Generic[Read, State]):
    """The answers of all subscriptions that ask the same of their rows.

    `read` evaluates a row once for all of them. Rows come and go with `follow`; `log_changes` then logs the answers that changed.
    """

    new_state: Callable[[], State]  # returns the state of a subscription without rows

    def __init__(self, compiled: CompiledRowView) -> None:
        self.compiled = compiled
        self.states: dict[int, State] = {}  # by the subscription's number
        self.touched: dict[
            int, Any
        ] = {}  # by number, if its answer may have changed since `log_changes`: the old state

    def __len__(self) -> int:
        return len(self.states)

    def begin(self, number: int) -> None:
        """Add a subscription, with no row yet."""
        self.states[number] = self.new_state()

    def end(self, number: int) -> None:
        """Remove a subscription."""
        del self.states[number]
        self.touched.pop(number, None)

    def change_row(
        self, row_key: RowKey, old: Read | None, new: Read | None, before: Sequence[int], after: Sequence[int]
    ) -> None:
        """Apply a change of a row from `old` to `new`; it belonged to the subscriptions `before`, now to `after`, ascending."""
        gone: Collection[int] = before
        come: Collection[int] = after
        if old == new and before and after:
            if before == after:
                return
            # The value is unchanged, so subscriptions that keep the row are not concerned.
            gone, come = set(before) - set(after), set(after) - set(before)
        if old is not None and gone:
            self.apply_row(row_key, old, gone, -1)
        if new is not None and come:
            self.apply_row(row_key, new, come, 1)

    @abstractmethod
    def read(self, row: Row) -> Read | None:
        """Return the aggregated value of a row, or of a pair of rows; None if the row does not count."""

    @abstractmethod
    def apply_row(self, row_key: RowKey, value: Read, numbers: Collection[int], step: int) -> None:
        """Add a row to subscriptions if `step` is 1, or remove it from them if it is -1."""

    @abstractmethod
    def log_changes(self, row: int, log: ChangeLog) -> None:
        """Log the answers that have changed since the last call, as changed by a row."""

    @abstractmethod
    def answer(self, number: int) -> Answer:
        """Return a subscription's answer."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return the bytes of all states, without the values that belong to the table."""


class ByRange(Struct, frozen=True):
    """The strategy of an aggregate by range: how it reads y, and both sides."""

    reads: Reads
    reformulator: Callable[[], Reformulator]
    answers: Callable[[], Answers]
    of_nothing: Answer = None  # the answer of a range that contains no number
    others: int = 0  # values that are no numbers count where there is no number: 1 if the least wins, -1 if the greatest


class AggregateStrategies(Struct, frozen=True):
    """Both ways of keeping an aggregate; `by_range` is None if it is kept by row only."""

    by_row: Callable[[CompiledRowView], RowAggregate[Any, Any]]
    by_range: ByRange | None = None


def floats(column: Floats) -> Floats:
    """Return a column as kernels take it: contiguous, of floats."""
    return np.ascontiguousarray(column, dtype=np.float64)


def missing_point_error(changes: PointChanges, position: int) -> PointError:
    """Return the error for a change whose old point is not stored."""
    point = (float(changes.old_x[position]), float(changes.old_y[position]))
    return PointError(
        position,
        f": its old point {point} is not stored; the earlier changes are applied. "
        f"Start again, and load the table's points",
    )
