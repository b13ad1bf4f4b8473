"""Views with any condition over rows, or over joined rows of two tables; each view keeps the rows that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, Final, TypeVar

import numpy as np
from msgspec.structs import replace

from tocsin.language.normal import dnf_unless_too_large, to_normal
from tocsin.language.normal.predicates import attributes_of
from tocsin.language.template.columns import Column
from tocsin.matching import ConjunctionBatch, EventBatch, IdArray, Matcher, create_matcher, takes_clauses
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.starting_matcher import StartingMatcher
from tocsin.model.conditions import TRUE, leaves
from tocsin.model.subscription import Answer
from tocsin.views.aggregates.base import RowAggregate
from tocsin.views.aggregates.registry import row_aggregate
from tocsin.views.answer_changes import AnswerChanges, ChangeLog
from tocsin.views.batch import Batch, BatchChanges
from tocsin.views.changes import Row, RowChange
from tocsin.views.compiled import CompiledRowView, CompiledView
from tocsin.views.family import Contents, FamilyStats
from tocsin.views.members import MemberChange, Members, Pairs, Rows

_BLOCK: Final = 4096  # members that are matched at once

Item = TypeVar("Item")


class RowFamily:
    """Follows the rows of a table, or the pairs that two tables make, for all aggregates.

    A member, which is a row or a pair, is matched as it was before a change and as it is after it: this is the
    message that the change becomes, and the matcher knows no state. The subscriptions that the member had and has go to
    the aggregates, one for all subscriptions that ask the same of their members.
    """

    def __init__(
        self, tables: tuple[str, ...], equal: tuple[tuple[str, str], ...] = (), matcher: str | None = None
    ) -> None:
        self.tables = tables
        self._members: Members = Rows(tables[0]) if len(tables) == 1 else Pairs((tables[0], tables[1]), equal)
        self._index = matcher
        self._matcher = self._new_matcher()
        self._aggregates: dict[CompiledRowView, RowAggregate[Any, Any]] = {}
        self._aggregate_of: dict[int, RowAggregate[Any, Any]] = {}  # by the subscription's number
        self._named: set[str] = set()  # attributes that conditions name, or named
        self._messages = 0

    def __len__(self) -> int:
        return len(self._aggregate_of)

    def load(self, rows: Contents) -> None:
        """Take the present rows of its tables, each with its slot."""
        self._members.load(rows)

    def add(self, numbers: IdArray, compiled: CompiledView, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""
        assert isinstance(compiled, CompiledRowView)  # noqa: S101 - the caller chose the family by it
        normal = (to_normal if takes_clauses(self._matcher) else dnf_unless_too_large)(compiled.condition)
        batch = ConjunctionBatch.of_shapes(numbers, normal, columns)
        # Only the new subscriptions are to meet the present members.
        matcher = self._new_matcher() if self._aggregate_of else self._matcher
        self._matcher.add(batch)
        if matcher is not self._matcher:
            matcher.add(batch)
        for predicate in leaves(compiled.condition):
            self._named.update(attribute.path for attribute in attributes_of(predicate))
        shared = replace(compiled, condition=TRUE)
        aggregate = self._aggregates.get(shared)
        if aggregate is None:
            aggregate = self._aggregates[shared] = row_aggregate(shared)
        for number in numbers.tolist():
            aggregate.begin(number)
            self._aggregate_of[number] = aggregate
        for block in _blocks(self._members.present(), _BLOCK):
            found = _matched(matcher, [row for _, row in block])
            for (row_key, row), after in zip(block, found, strict=True):
                if after:
                    aggregate.change_row(row_key, None, aggregate.read(row), (), after)
        aggregate.log_changes(0, ChangeLog())  # the caller asks for their first answers

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; unknown ones are skipped."""
        self._matcher.remove(numbers)
        for number in numbers.tolist():
            aggregate = self._aggregate_of.pop(number, None)
            if aggregate is not None:
                aggregate.end(number)
                if not len(aggregate):
                    del self._aggregates[aggregate.compiled]

    def read(self, row: Row) -> Row:
        """Return a row as it is: it may hold anything."""
        return row

    def read_batch(self, batch: Batch) -> Batch:
        """Return a batch as it is."""
        return batch

    def change(self, changes: Sequence[RowChange]) -> AnswerChanges:
        """Apply changes of its tables, and return the answers that change, by the change and then by the subscription."""
        log = ChangeLog()
        touched: set[RowAggregate[Any, Any]] = set()
        current = 0
        steps = (
            (position, step)
            for position, one in enumerate(changes)
            for step in self._members.apply_change(one)
        )
        for block in _blocks(steps, _BLOCK):
            self._messages += len(block)
            for (change, step), (before, after) in zip(block, self._matches(block), strict=True):
                if change != current:
                    _log_changes(current, touched, log)
                    current = change
                if before or after:
                    touched |= self._apply_step(step, before, after)
        _log_changes(current, touched, log)
        return log.changes()

    def change_batch(self, changes: BatchChanges, batch: Batch) -> AnswerChanges:
        """Apply the rows of a batch, and return the answers that change, by the row's position in the batch."""
        if isinstance(self._members, Rows):
            found = self._change_rows(self._members, changes, batch)
        else:
            found = self.change(changes.of_rows(batch.rows))
        return replace(found, rows=changes.positions[found.rows])

    def _change_rows(self, members: Rows, changes: BatchChanges, batch: Batch) -> AnswerChanges:
        """Apply the rows of a batch, matched by the column; only those become mappings that satisfy something."""
        log = ChangeLog()
        self._messages += len(changes.slots)
        was_kept = members.apply_batch(changes)
        if not self._aggregate_of:
            for slot in changes.slots[was_kept].tolist():
                members.drop(slot)
            return log.changes()
        matches = self._matcher.match(ArrowEvents(batch.table, batch.columns, {}, None))
        satisfies = np.diff(matches.offsets)[changes.positions] > 0
        had = changes.previous >= 0
        had[had] = satisfies[changes.previous[had]]
        concerned = np.flatnonzero(satisfies | had | was_kept).tolist()
        kept = [members.kept(slot) for slot in changes.slots[was_kept].tolist()]
        of_kept = dict(zip(np.flatnonzero(was_kept).tolist(), _matched(self._matcher, kept), strict=True))
        positions, slots = changes.positions.tolist(), changes.slots.tolist()
        satisfying = changes.positions[satisfies]
        rows = dict(zip(satisfying.tolist(), batch.rows_at(satisfying), strict=True))
        latest: dict[int, tuple[list[int], Row]] = {}  # by slot: what its row satisfies, and the row
        touched: set[RowAggregate[Any, Any]] = set()
        for change in concerned:
            slot, position = slots[change], positions[change]
            before, old = latest.get(slot, ([], None))
            if change in of_kept:
                before, old = of_kept[change], members.kept(slot)
            new = rows.get(position)
            after = [] if new is None else matches[position].tolist()
            if before or after:
                touched |= self._apply_step(MemberChange(members.row_key(slot), old, new), before, after)
                _log_changes(change, touched, log)
            if new is None:
                members.drop(slot)
                latest.pop(slot, None)
            else:
                members.keep(slot, new)
                latest[slot] = after, new
        return log.changes()

    def answer(self, number: int) -> Answer:
        """Return a subscription's present answer."""
        return self._aggregate_of[number].answer(number)

    def stats(self) -> FamilyStats:
        """Return statistics; a message is a member that was added, removed or changed."""
        return FamilyStats(
            len(self),
            self._messages,
            self._members.nbytes,
            self._matcher.stats().bytes,
            sum(aggregate.nbytes for aggregate in self._aggregates.values()),
        )

    def _new_matcher(self) -> Matcher:
        return StartingMatcher() if self._index is None else create_matcher(self._index)

    def _matches(self, steps: Sequence[tuple[int, MemberChange]]) -> Iterator[tuple[list[int], list[int]]]:
        """Return, for each step, the subscriptions that the member satisfies before and after it."""
        if not self._aggregate_of:
            yield from (([], []) for _ in steps)
            return
        rows: list[Row] = []
        matched_again: list[bool] = []  # whether a step's new row is matched for itself
        for _, step in steps:
            if step.old is not None:
                rows.append(step.old)
            matched_again.append(step.new is not None and not self._is_alike(step))
            if matched_again[-1] and step.new is not None:
                rows.append(step.new)
        found = _matched(self._matcher, rows)
        for (_, step), is_matched in zip(steps, matched_again, strict=True):
            before = next(found) if step.old is not None else []
            yield before, next(found) if is_matched else before if step.new is not None else []

    def _is_alike(self, step: MemberChange) -> bool:
        """Tell whether a step changes no attribute that a condition names."""
        old, new, names = step.old, step.new, self._named
        if old is None or new is None:
            return False
        for name, value in new.items():
            if name in names and (type(was := old.get(name)) is not type(value) or was != value):
                return False
        return all(name in new or name not in names for name in old)

    def _apply_step(
        self, step: MemberChange, before: list[int], after: list[int]
    ) -> set[RowAggregate[Any, Any]]:
        """Apply a step to the aggregates of these subscriptions, and return those aggregates."""
        if len(self._aggregates) == 1:
            (aggregate,) = self._aggregates.values()
            by_aggregate = {aggregate: (before, after)}
        else:
            by_aggregate = {}
            for which, numbers in enumerate((before, after)):
                for number in numbers:
                    by_aggregate.setdefault(self._aggregate_of[number], ([], []))[which].append(number)
        for aggregate, (had, have) in by_aggregate.items():
            old = aggregate.read(step.old) if had and step.old is not None else None
            new = aggregate.read(step.new) if have and step.new is not None else None
            aggregate.change_row(step.row_key, old, new, had, have)
        return set(by_aggregate)


def _matched(matcher: Matcher, rows: Sequence[Row]) -> Iterator[list[int]]:
    """Return, for each row, the subscriptions whose condition it satisfies, ascending."""
    if len(rows) < 3:
        return iter([matcher.match_one(row).tolist() for row in rows])
    found = matcher.match(EventBatch(rows))
    ids, offsets = found.ids.tolist(), found.offsets.tolist()
    return (ids[first:last] for first, last in pairwise(offsets))


def _log_changes(change: int, touched: set[RowAggregate[Any, Any]], log: ChangeLog) -> None:
    """Log the answers that a change has altered in these aggregates, and clear the set."""
    for aggregate in touched:
        aggregate.log_changes(change, log)
    touched.clear()


def _blocks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    items = iter(items)
    while block := list(islice(items, size)):
        yield block
