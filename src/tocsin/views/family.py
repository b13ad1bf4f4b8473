"""Subscriptions that ask the same of the same attributes, and so share what the table's changes become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model.subscription import Answer, Told
from tocsin.views.changes import Row, RowChange
from tocsin.views.plan import Plan


class ViewChange(Struct, frozen=True):
    """One answer that a change of a table altered: the place of the change, the subscription's number, old and new.

    Of a set of values or rows, `removed` and `added` are what makes the difference.
    """

    change: int
    number: int
    old: Answer
    new: Answer
    removed: tuple[Told, ...] = ()
    added: tuple[Told, ...] = ()


class FamilyStats(Struct, frozen=True):
    """What a family holds and what that costs: the server's side, the index of listeners, the answers."""

    subscriptions: int
    messages: int  # sent so far
    server_bytes: int
    listener_bytes: int
    answer_bytes: int


class Family(Protocol):
    """Reformulates the changes of its tables, finds who hears of them, and keeps what each was told last.

    Its user sees to it that one call at a time is made.
    """

    def load(self, rows: Mapping[str, Iterable[tuple[int, Row]]]) -> None:
        """Take the present rows of its tables, each with its slot; called once, before all else."""

    def add(self, numbers: IdArray, plan: Plan, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; those that are not there are passed over."""

    def change(self, changes: Sequence[RowChange]) -> list[ViewChange]:
        """Follow changes of its tables, and return what they alter; of one change each subscription hears once."""

    def answer(self, number: int) -> Answer:
        """Return a subscription's present answer."""

    def stats(self) -> FamilyStats:
        """Return what is held."""
