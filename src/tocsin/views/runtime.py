"""The runtime of views: tables, the families of views that read them, and the answers that rows change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from tocsin.language import Cnf, Dnf, Template, TemplateRows
from tocsin.language.parsing.cursor import closest
from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model import Event, Subscription, View
from tocsin.model.errors import EventError, NormalFormError, SavedError, SubscriptionError, TemplateError
from tocsin.model.options import SubscriptionOptions
from tocsin.model.subscription import Answer
from tocsin.model.ticks import StreamTicks
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Bools, Int64s
from tocsin.views.additions import Addition, Additions
from tocsin.views.answer_changes import NO_CHANGES, AnswerChanges, same_answer
from tocsin.views.batch import Batch, read_batch
from tocsin.views.catalog import TableCatalog, quoted
from tocsin.views.changes import RowChange
from tocsin.views.compilation import compile_view
from tocsin.views.compiled import CompiledView
from tocsin.views.explanation import ViewExplanation, explain_view
from tocsin.views.family import Family, family_key, new_family
from tocsin.views.saved_views import SavedViews, read_views, write_views
from tocsin.views.table import RowUpdate, StoredTable

_MOST_CHANGES: Final = 4_000_000  # answers that one batch of events may change


class ViewStats(Struct, frozen=True):
    """Sizes and counts of tables and views. The `families` of views share the messages that changes become.

    `messages` have been made so far, and `late` rows were older than the row of their key.
    """

    subscriptions: int = 0
    families: int = 0
    tables: int = 0
    rows: int = 0
    bytes: int = 0
    messages: int = 0
    late: int = 0


class TableRows(Struct, frozen=True):
    """Rows of an Arrow table, as the table and each of its families read them."""

    table: StoredTable
    batch: Batch
    readings: dict[Any, Any]  # by the family's key


class PreparedViews(Struct, frozen=True):
    """The state of views, ready to take the place of that of a runtime."""

    tables: TableCatalog
    families: dict[Any, Family]
    reports: dict[int, Answer]  # the last reported answers that differ from the present ones, by number
    left_out: tuple[str, ...]  # tables that are not declared


class ViewRuntime:
    """Keeps tables, and finds the views whose answers a row changes. The caller makes one call at a time.

    `matcher` names the index that holds reformulated subscriptions; without it, ranges are held by the point index.

    A call may be interrupted anywhere. `_stale` has the keys of the families that may not have followed a change of their
    tables: they are entered before the tables change, and leave one by one. The next call rebuilds those that an interrupted
    call left, and their subscribers hear of the difference with the next change.
    """

    def __init__(self, matcher: str | None = None) -> None:
        self.tables = TableCatalog()
        self._matcher = matcher
        self._families: dict[Any, Family] = {}
        self._additions = Additions()
        self._stale: list[Any] = []  # keys of families
        self._unreported: dict[
            int, Answer
        ] = {}  # the last reported answer, where a later change was not reported

    def __len__(self) -> int:
        return len(self._additions)

    @property
    def numbers(self) -> IdArray:
        """Return the numbers of all views."""
        return self._additions.numbers

    @property
    def most_at_once(self) -> int:
        """Return the number of events that may be processed together, so that their changes fit in memory."""
        return max(1, _MOST_CHANGES // max(len(self), 1))

    # subscriptions

    def compile(
        self, query: View, id_: str, _: SubscriptionOptions | None = None, __: Dnf | Cnf | None = None
    ) -> CompiledView:
        """Return a view of declared tables as families maintain it, or raise `SubscriptionError`."""
        return self._compile(query, id_, None)

    def _compile(self, query: View, id_: str, columns: Mapping[str, Column] | None) -> CompiledView:
        """Return a view as `compile` does; the parameters of a template are in `columns`."""
        for table in query.tables:
            if table.name not in self.tables:
                near = closest(table.name, tuple(self.tables.keys))
                hint = f"did you mean `{near}`? If not, declare it" if near else "declare it"
                raise SubscriptionError(
                    f"there is no table `{table.name}`; {hint} first: "
                    f'`engine.table("{table.name}", key="…")`, or `--table {table.name}=KEY`',
                    id_,
                )
        return compile_view(query, id_, columns)

    def compile_rows(
        self,
        template: Template,
        rows: TemplateRows,
        ids: Sequence[str],  # noqa: ARG002 - the protocol of runtimes has them
        options: SubscriptionOptions,  # noqa: ARG002
    ) -> tuple[CompiledView, list[TemplateError]]:
        """Return a template of views as families maintain it; no row fails by itself."""
        assert isinstance(template.query, View)  # noqa: S101 - the caller checked
        return self._compile(template.query, "template", rows.columns), []

    def add(
        self,
        numbers: IdArray,
        compiled: CompiledView,
        columns: Mapping[str, Column],
        _: SubscriptionOptions,
        id_: str,
    ) -> None:
        """Add one subscription for each number; subscriptions of a template have a row of `columns` each."""
        self._rebuild_stale()
        key = family_key(compiled)
        family = self._families.get(key)
        if family is None:
            family = new_family(compiled, self._matcher)
            try:
                family.load(self.tables.contents(family.tables))
            except EventError as fault:
                raise SubscriptionError(f"a row of its table cannot be read: {fault}", id_) from fault
            self._families[key] = family
            for name in family.tables:
                self.tables[name].readers[key] = None
        # The record comes first, so that the subscriptions can be removed wherever the call is interrupted.
        self._additions.record(Addition(key, numbers, compiled, columns))
        try:
            family.add(numbers, compiled, columns)
        except NormalFormError as fault:
            raise SubscriptionError(str(fault), id_) from fault

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove subscriptions; numbers that are no views are passed over."""
        gone: dict[Any, list[int]] = {}
        for number in numbers:
            key = self._additions.pop(number)
            if key is not None:
                gone.setdefault(key, []).append(number)
                self._unreported.pop(number, None)
        for key, some in gone.items():
            family = self._families[key]
            family.remove(np.array(some, dtype=np.int64))
            if not len(family):
                for name in family.tables:
                    self.tables[name].readers.pop(key, None)
                del self._families[key]

    # events

    def read(self, event: Event) -> RowUpdate | None:
        """Return an event as a row of its table, read by all families that will follow it; None if it is of no table.

        Raises `EventError` for an event that cannot be a row of its table.
        """
        table = self.tables.by_name.get(event.stream or "")
        if table is None:
            return None
        update = table.read(event)
        if update.row is not None:
            for key in table.readers:
                update.readings[key] = self._families[key].read(update.row)
        return update

    def process(self, updates: Sequence[RowUpdate]) -> AnswerChanges:
        """Apply rows that were read, deletions included, in order; return the answers that change.

        They come by row, and within a row by number.
        """
        if self._stale:
            self._rebuild_stale()
        own: dict[
            Any, tuple[list[int], list[RowChange]]
        ] = {}  # by the family's key, with the rows of the changes
        for update in updates:
            for key in update.table.readers:
                own[key] = [], []
        self._stale = list(own)[::-1]
        for row, update in enumerate(updates):
            table, new = update.table, update.row
            slot = (
                table.delete(update.key, update.end)
                if new is None
                else table.upsert(update.key, new, update.end)
            )
            if slot is not None:
                for key in table.readers:
                    rows, changes = own[key]
                    rows.append(row)
                    changes.append(RowChange(table.name, slot, update.readings.get(key)))

        def follow(key: Any) -> AnswerChanges:
            rows, changes = own[key]
            found = self._families[key].change(changes) if changes else NO_CHANGES
            if len(rows) == len(updates) or not len(found.rows):
                return found
            return replace(found, rows=np.array(rows, dtype=np.int64)[found.rows])

        found = self._change_stale(follow)
        return found if len(found.rows) < 2 else found.sort()

    def read_rows(self, name: str, rows: pa.Table) -> TableRows:
        """Return an Arrow table's rows as rows of a table, read by all families that will follow them.

        Raises `EventError` if a row cannot be in the table, or if it cannot be read by the column.
        """
        self._rebuild_stale()
        table = self.tables[name]
        batch = read_batch(rows, table.key, name)
        return TableRows(table, batch, {key: self._families[key].read_batch(batch) for key in table.readers})

    def process_rows(self, rows: TableRows, ends: Int64s) -> AnswerChanges:
        """Apply rows that were read, in order; return the answers that change, by row, and within a row by number."""
        readings = rows.readings
        self._stale = list(readings)[::-1]
        changes = rows.table.upsert_batch(rows.batch, ends)
        found = self._change_stale(lambda key: self._families[key].change_batch(changes, readings[key]))
        return found.sort()

    def process_table(self, name: str, rows: pa.Table, ends: Int64s) -> AnswerChanges:
        """Put an Arrow table's rows into a table; return the answers that change, by row, and within a row by number.

        Nothing is applied if a row cannot be in the table. Views over a range of plain attributes, and with any condition
        over rows of one table, follow by the column, others row by row.
        """
        read = self.read_rows(name, rows)
        if (ends[1:] < ends[:-1]).any() and len(set(read.batch.keys)) < len(read.batch):
            raise EventError(
                "one key has several rows, which are not in the order of their end; sort the table, or publish it"
            )
        return self.process_rows(read, ends)

    def report(self, changes: AnswerChanges, reportable: Bools | None = None) -> AnswerChanges:
        """Return the changes to report: `reportable` ones (default: all), without changes back to the last reported answer.

        The answer before a reported change is the last reported one.
        """
        if not self._unreported and (reportable is None or reportable.all()):
            return changes
        if reportable is None:
            reportable = np.ones(len(changes), dtype=np.bool_)
        concerned = {*self._unreported, *changes.numbers[~reportable].tolist()}
        reported = reportable.copy()
        old: dict[int, Answer] = {}
        for position in np.flatnonzero(np.isin(changes.numbers, list(concerned))).tolist():
            number = int(changes.numbers[position])
            if not reportable[position]:
                self._unreported.setdefault(number, changes.old_answer(position))
            elif number in self._unreported:
                old[position] = self._unreported.pop(number)
                reported[position] = not same_answer(old[position], changes.new_answer(position))
        return changes.with_old(old).take(reported)

    def advance(self, time: int) -> AnswerChanges:  # noqa: ARG002 - the protocol of runtimes has it
        """Return the answers that change as time passes without an event: none, since no view depends on time."""
        return NO_CHANGES

    # saving

    def snapshot(self, numbers: IdArray) -> Parts:
        """Return the state, with that of these views in this order: tables, and answers that differ from the last reported."""
        self._rebuild_stale()
        return write_views(self.tables, self._unreported, numbers)

    def restore(self, parts: Parts, numbers: IdArray) -> tuple[str, ...]:
        """Replace the state by that of a snapshot, as `prepare` and `adopt` do; return its tables that are not declared here."""
        prepared = self.prepare(parts, numbers)
        self.adopt(prepared)
        return prepared.left_out

    def prepare(self, parts: Parts, numbers: IdArray) -> PreparedViews:
        """Return a snapshot as `adopt` takes it, or raise `SavedError` if it does not fit; nothing changes.

        `numbers` are those that the snapshot was taken with, in its order, as they are called here; -1 for those that
        are gone. A declared table that the snapshot lacks has no rows; one that is not declared is left out.
        """
        saved = read_views(parts)
        reports = self._reports(saved, numbers)
        additions = self._additions.by_family()
        tables = TableCatalog()
        for name, table in self.tables.by_name.items():
            found = saved.tables.get(name, StoredTable(name, table.key))
            if found.key != table.key:
                raise SavedError(
                    f"the table `{name}` has the key {quoted(found.key)} there, and {quoted(table.key)} here"
                )
            tables.by_name[name] = found
            found.readers = {key: None for key in table.readers if key in additions}
        try:
            families = {
                key: self._additions.build(some, tables, self._matcher)[0] for key, some in additions.items()
            }
        except EventError as fault:
            raise SavedError(f"a row of a table cannot be read by a view: {fault}") from fault
        left_out = tuple(name for name in saved.tables if name not in tables)
        return PreparedViews(tables, families, reports, left_out)

    def adopt(self, prepared: PreparedViews) -> None:
        """Replace the state by a snapshot that was prepared; no change of an answer is reported."""
        self.tables.by_name = prepared.tables.by_name
        self._families, self._stale = prepared.families, []
        self._unreported = prepared.reports

    def restore_reports(self, saved: SavedViews, numbers: IdArray) -> None:
        """Take the last reported answers of a snapshot whose tables are here already; raise `SavedError` if they do not fit."""
        self._unreported = self._reports(saved, numbers)

    def _reports(self, saved: SavedViews, numbers: IdArray) -> dict[int, Answer]:
        if saved.count != len(numbers):
            raise SavedError(f"the state is that of {saved.count:,} views, not of {len(numbers):,}")
        return {
            number: answer
            for position, answer in saved.unreported.items()
            if (number := numbers.item(position)) in self._additions
        }

    # answers

    def answer(self, number: int) -> Answer:
        """Return a view's present answer."""
        self._rebuild_stale()
        return self._families[self._additions.family(number)].answer(number)

    def explain(
        self, number: int, subscription: Subscription, event: Event, ticks: StreamTicks
    ) -> ViewExplanation:
        """Return a view's present answer, and why an event would change it or would not."""
        assert isinstance(subscription.query, View)  # noqa: S101 - the caller checked
        compiled = self.compile(subscription.query, subscription.id)
        answer = self.answer(number)
        names = [table.name for table in subscription.query.tables]
        update = self.read(event) if event.stream in names else None
        if update is None:
            of = f"of stream `{event.stream}`" if event.stream is not None else "of no stream"
            outside = [f"it reads {quoted(names)}, the event is {of}"]
        else:
            outside = subscription.outside_validity(event, ticks)
            if update.table.is_late(update.key, update.end):
                outside.insert(
                    0,
                    f"the event ended at {ticks.shown(event.end, event.stream)}, before the stored row: it is late",
                )
        if outside or update is None:
            return explain_view(subscription, compiled, answer, answer, not_reached_reasons=tuple(outside))
        table, slot = update.table, update.table.find(update.key)
        family = new_family(compiled, self._matcher)
        family.load(self.tables.contents(family.tables))
        family.add(np.zeros(1, dtype=np.int64), compiled, {})
        new = None if update.row is None else family.read(update.row)
        family.change([RowChange(table.name, table.unused_slot if slot is None else slot, new)])
        old = None if slot is None else table.row(slot)
        return explain_view(subscription, compiled, answer, family.answer(0), rows=(old, update.row))

    def dry_run(self, query: View, events: Sequence[Event]) -> tuple[AnswerChanges, list[tuple[int, str]]]:
        """Return the changes of a view alone over tables that are empty at first, and the refused events with a reason.

        Both name an event by its index.
        """
        alone = ViewRuntime(self._matcher)
        for name, key in self.tables.keys.items():
            alone.tables.declare(name, key)
        alone.add(
            np.zeros(1, dtype=np.int64), alone.compile(query, "test"), {}, SubscriptionOptions(), "test"
        )
        updates: dict[int, RowUpdate] = {}
        refused: list[tuple[int, str]] = []
        for position, event in enumerate(events):
            try:
                update = alone.read(event)
            except EventError as fault:
                refused.append((position, str(fault)))
            else:
                if update is not None:
                    updates[position] = update
        changes = alone.process(list(updates.values()))
        return replace(changes, rows=np.array(list(updates), dtype=np.int64)[changes.rows]), refused

    def stats(self) -> ViewStats:
        """Return sizes and counts of all tables and families together."""
        parts = [family.stats() for family in self._families.values()]
        return ViewStats(
            subscriptions=len(self),
            families=len(parts),
            tables=len(self.tables),
            rows=sum(map(len, self.tables)),
            bytes=sum(table.nbytes for table in self.tables)
            + sum(part.server_bytes + part.index_bytes + part.answer_bytes for part in parts),
            messages=sum(part.messages for part in parts),
            late=sum(table.late for table in self.tables),
        )

    # interruptions

    def _change_stale(self, change: Callable[[Any], AnswerChanges]) -> AnswerChanges:
        """Call `change` with the key of each stale family, and return the answers that change."""
        parts: list[AnswerChanges] = []
        try:
            while self._stale:
                parts.append(change(self._stale[-1]))
                self._stale.pop()
        except BaseException:
            for part in parts:
                self.report(part, np.zeros(len(part), dtype=np.bool_))
            raise
        return parts[0] if len(parts) == 1 else AnswerChanges.join(parts)

    def _rebuild_stale(self) -> None:
        """Build the families again that an interrupted call left, and record answers that differ."""
        while self._stale:
            self._rebuild(self._stale[-1])
            self._stale.pop()

    def _rebuild(self, key: Any) -> None:
        """Replace a family by one built from the tables, and record its answers that differ as unreported."""
        old = self._families.get(key)
        if old is None:  # all its subscriptions have been removed
            return
        additions = self._additions.by_family().get(key)
        if additions is None:
            return
        fresh, numbers = self._additions.build(additions, self.tables, self._matcher)
        self._families[key] = fresh
        for number in numbers:
            try:
                before = old.answer(number)
            except Exception:  # noqa: BLE001, S112 - the old family may be broken anywhere
                continue
            if not same_answer(before, fresh.answer(number)):
                self._unreported.setdefault(number, before)
