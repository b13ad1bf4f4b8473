"""A family: views with the same aggregate over the same attributes; they share reformulated messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model.subscription import Answer
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.batch import Batch, BatchChanges
from tocsin.views.changes import Row, RowChange
from tocsin.views.compiled import CompiledRangeView, CompiledView

Contents: TypeAlias = Mapping[str, Iterable[tuple[int, Row]]]
"""The rows of tables by the table's name, each with its slot."""


class FamilyStats(Struct, frozen=True):
    """The number of subscriptions and of messages sent so far, and the bytes of each side."""

    subscriptions: int
    messages: int
    server_bytes: int
    index_bytes: int
    answer_bytes: int


class Family(Protocol):
    """Reformulates the changes of its tables, finds the subscriptions they concern, and keeps their answers.

    The caller makes one call at a time.
    """

    tables: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of subscriptions."""

    def load(self, rows: Contents) -> None:
        """Read the present rows of its tables; called once, before all else."""

    def add(self, numbers: IdArray, compiled: CompiledView, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; subscriptions of a template have a row of `columns` each."""

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; numbers that it does not know are passed over."""

    def read(self, row: Row) -> Any:
        """Return a row as the family reads it, or raise `EventError` if it cannot; no state changes."""

    def read_batch(self, batch: Batch) -> Any:
        """Return the rows of a batch as `change_batch` takes them, or raise `EventError`."""

    def change(self, changes: Sequence[RowChange]) -> AnswerChanges:
        """Apply changes of its tables, and return the answers that change, by the index of the change."""

    def change_batch(self, changes: BatchChanges, read: Any) -> AnswerChanges:
        """Apply a batch that was `read`, and return the answers that change, by the row's position in the batch."""

    def answer(self, number: int) -> Answer:
        """Return a subscription's present answer."""

    def stats(self) -> FamilyStats:
        """Return sizes and counts."""


def new_family(compiled: CompiledView, matcher: str | None) -> Family:
    """Return an empty family for subscriptions compiled like `compiled`; `matcher` names its index."""
    if isinstance(compiled, CompiledRangeView):
        from tocsin.views.range_family import RangeFamily  # noqa: PLC0415 - it brings the compiler

        return RangeFamily(compiled.aggregate, matcher, compiled)
    from tocsin.views.row_family import RowFamily  # noqa: PLC0415 - it brings the compiler

    return RowFamily(compiled.tables, compiled.equal, matcher)


def family_key(compiled: CompiledView) -> tuple[Any, ...]:
    """Return the key that subscriptions of one family have in common."""
    if isinstance(compiled, CompiledRangeView):
        return compiled.aggregate, compiled.table, compiled.x, compiled.moments, compiled.y
    return compiled.tables, compiled.equal
