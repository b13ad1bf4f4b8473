"""What every way of keeping is: rows come and go for subscriptions, and what that alters is told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Generic, TypeAlias, TypeVar

from tocsin.model.subscription import Answer
from tocsin.views.answer_changes import ChangeLog
from tocsin.views.changes import Row
from tocsin.views.compiled import CompiledRowView

Place: TypeAlias = tuple[int, ...]
"""A row by the place at which it came among its table's, a pair by those of both its rows; it stays while they do."""

Read = TypeVar("Read")


class Keeper(ABC, Generic[Read]):
    """Keeps, for all subscriptions that ask the same of their rows, what their answers need.

    What is asked of a row is read once for all of them.
    """

    def __init__(self, plan: CompiledRowView) -> None:
        self.plan = plan

    @abstractmethod
    def read(self, row: Row) -> Read | None:
        """Return what a row, or a pair of rows, is to these subscriptions; None if they pass over it."""

    @abstractmethod
    def begin(self, number: int) -> None:
        """Let a subscription begin, with no row yet."""

    @abstractmethod
    def end(self, number: int) -> None:
        """Let go of what is kept for a subscription."""

    @abstractmethod
    def follow(
        self, place: Place, old: Read | None, new: Read | None, before: Sequence[int], after: Sequence[int]
    ) -> None:
        """Take what was read of one row before and after a change, and whose it was and is, in ascending order."""

    @abstractmethod
    def settle(self, row: int, log: ChangeLog) -> None:
        """Log the answers that have changed since the last call, as changed by a row."""

    @abstractmethod
    def answer(self, number: int) -> Answer:
        """Return a subscription's answer."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many subscriptions there are."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Return the bytes of what is kept, without the values that are the table's own."""


def parted(
    same: bool, before: Sequence[int], after: Sequence[int]
) -> tuple[Collection[int], Collection[int]]:
    """Return from whom a row goes, and to whom it comes; those who had it and have it are in both, unless it is the same."""
    if not same or not before or not after:
        return before, after
    if before == after:
        return (), ()
    had, have = set(before), set(after)
    return had - have, have - had
