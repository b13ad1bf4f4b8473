"""The tables that an engine holds, and the views of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.engine.altering import Altering
from tocsin.engine.answers import Altered
from tocsin.engine.families import HeldFamily, Pending, TableContents, family_key, new_family
from tocsin.engine.results import HeldViews
from tocsin.engine.view_explaining import ViewExplanation, explain_view
from tocsin.language.parsing.cursor import closest
from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model import Event, Query, Subscription, View
from tocsin.model.errors import EventError, NormalFormError, SubscriptionError, TocsinError
from tocsin.model.event import DELETIONS, is_deletion
from tocsin.model.subscription import Answer
from tocsin.views.batch import Changed, read_batch
from tocsin.views.changes import Row, RowChange
from tocsin.views.family import ViewChange
from tocsin.views.plan import Plan
from tocsin.views.planning import plan_of
from tocsin.views.snapshots import load_tables, save_tables
from tocsin.views.table import Table

_ALTERED: Final = 4_000_000  # answers that one batch of events may alter


class Views:
    """Keeps tables, and tells which views a change alters. Called under the engine's lock.

    `matcher` names the index that holds reformulated subscriptions, the point index if None.
    """

    def __init__(self, matcher: str | None = None) -> None:
        self._matcher = matcher
        self.tables: dict[str, Table] = {}
        self._families: dict[Any, HeldFamily] = {}
        self._family_of: dict[int, Any] = {}  # by number: the family's key
        self._pending: list[Pending] = []
        self._untold: dict[int, Answer] = {}  # what those were told last who did not hear of a change since
        self._is_behind = False  # whether a call may have been broken off in the middle of a change
        self.asked: Callable[[int], Query] | None = None  # what the subscription of a number asks

    def __len__(self) -> int:
        return len(self._family_of)

    @property
    def most_at_once(self) -> int:
        """Return how many events may be followed together, so that what they may alter is not too much at once."""
        return max(1, _ALTERED // max(len(self), 1))

    # tables

    def declare(self, name: str, key: str | Sequence[str]) -> None:
        """Let a stream's events be rows of a table with this key."""
        names = (key,) if isinstance(key, str) else tuple(key)
        if not name:
            raise TocsinError("a table's name is its stream's: a string that is not empty")
        if not names or not all(names):
            raise TocsinError(f"the key of a table is an attribute's name, or several, not {key!r}")
        held = self.tables.get(name)
        if held is not None and held.key != names:
            raise TocsinError(
                f"the table `{name}` has the key {_listed(held.key)} already, not {_listed(names)}"
            )
        if held is None:
            self.tables[name] = Table(name, names)

    def save(self, path: Path) -> None:
        """Write all tables to a file."""
        save_tables(self.tables.values(), path)

    def load(self, path: Path) -> tuple[str, ...]:
        """Put the tables of a file in the place of those of the same name, and return their names.

        It is done before they have views, whose answers would change with no event to tell of.
        """
        tables = load_tables(path)
        read = {name for held in self._families.values() for name in held.tables}
        for table in tables:
            if table.name in read:
                raise TocsinError(
                    f"the table `{table.name}` has views; load tables first, and then subscribe, or into another engine"
                )
            if table.name in self.tables and self.tables[table.name].key != table.key:
                raise TocsinError(
                    f"{path}: the table `{table.name}` has the key {_listed(table.key)} there, and "
                    f"{_listed(self.tables[table.name].key)} here"
                )
        self.tables |= {table.name: table for table in tables}
        return tuple(table.name for table in tables)

    def is_table(self, stream: str | None) -> bool:
        """Tell whether a stream's events are rows of a table."""
        return stream in self.tables

    def check(self, event: Event) -> None:
        """Raise `EventError` for an event that cannot be a row of its table."""
        table = self.tables.get(event.stream or "")
        if table is None:
            return
        row = _row(event)
        table.slot(row)
        if not is_deletion(event):
            for held in self._families.values():
                if held.ranged is not None and table.name in held.tables:
                    held.ranged.check(row)

    def take(self, event: Event, mark: int, now: int) -> None:
        """Change an event's table, if it has one; the views follow at `release`."""
        table = self.tables.get(event.stream or "")
        if table is None:
            return
        change = (table.delete if is_deletion(event) else table.upsert)(_row(event), event.end)
        if change is not None and self._families:
            self._pending.append(Pending(mark, event, now, change))

    def release(self) -> list[Altered]:
        """Return what the changes since the last time alter, in their order."""
        self._mend()
        pending = self._pending
        self._is_behind = bool(pending)
        found: list[tuple[int, ViewChange]] = []
        try:
            for held in self._families.values():
                first, held.known = held.known, len(pending)
                places = [at for at in range(first, len(pending)) if pending[at].change.table in held.tables]
                if places:
                    held.open = True
                    changes = held.family.change([pending[place].change for place in places])
                    held.open = False
                    found += ((places[one.change], one) for one in changes)
        except BaseException:
            for _, change in found:
                self.keep_untold(change)
            raise
        self._pending = []
        for held in self._families.values():
            held.known = 0
        self._is_behind = False
        found.sort(key=lambda one: (one[0], one[1].number))
        return [
            Altered(pending[place].mark, pending[place].event, pending[place].now, change)
            for place, change in found
        ]

    def _mend(self) -> None:
        """Build the families anew that a call was broken off in; whom it concerns hears of it with the next change."""
        if not self._is_behind:
            return
        for key, held in self._families.items():
            if not held.open or self.asked is None:
                continue
            from tocsin.engine.mending import move  # noqa: PLC0415 - it brings the compiler

            views = {n: self.asked(n) for n, family in self._family_of.items() if family == key}
            fresh = new_family(held.plan, self._matcher)
            fresh.family.load(self._rows(held.tables))
            told = move(
                {n: view for n, view in views.items() if isinstance(view, View)}, held.family, fresh.family
            )
            held.family, held.ranged = fresh.family, fresh.ranged
            held.known, held.open = len(self._pending), False
            for number, answer in told.items():
                self._untold.setdefault(number, answer)
        self._is_behind = bool(self._pending)

    def catch_up(self) -> None:
        """Follow what a call that was broken off has left; whom it concerns hears of it with the next change."""
        self._mend()
        if self._pending:
            for altered in self.release():
                self.keep_untold(altered.change)

    def upsert(self, name: str, rows: pa.Table, ends: NDArray[np.int64]) -> Altering:
        """Put an Arrow table's rows into a table, and return what that alters, as columns.

        Nothing is taken of one with a row that cannot be in the table. Views that look at one range of an attribute follow
        by the column, others row by row.
        """
        table = self.tables[name]
        batch = read_batch(rows, table.key, name)
        self.catch_up()
        families = [held for held in self._families.values() if name in held.tables]
        fast = [one.ranged for one in families if one.ranged is not None and one.ranged.by_column is not None]
        slow = [one for one in families if one.ranged not in fast]
        after = [batch.row(place) for place in range(len(batch))] if slow else []
        for family in fast:
            family.check_batch(batch)
        for ranged in (held.ranged for held in slow):
            if ranged is not None:
                for row in after:
                    ranged.check(row)
        before = [table.held(key) for key in batch.keys] if slow else []
        self._is_behind = True
        for held in families:
            held.open = True
        changed = table.upsert_batch(batch, ends, {name for one in fast for name in one.by_column or ()})
        if changed is None:
            self._settle(families)
            raise EventError(
                "one key has several rows, which are not in the order of their end; sort the table, or publish it"
            )
        found = [Altering.of_told(one.change_batch(changed), changed.places) for one in fast]
        if slow:
            found += self._follow(slow, before, after, changed, name)
        self._settle(families)
        return Altering.joined(found)

    def _settle(self, families: Iterable[HeldFamily]) -> None:
        for held in families:
            held.open = False
        self._is_behind = False

    def _follow(
        self,
        families: list[HeldFamily],
        before: list[Row | None],
        after: list[Row],
        changed: Changed,
        name: str,
    ) -> Iterator[Altering]:
        """Return what a batch alters in families that look at it row by row."""
        changes: list[RowChange] = []
        rows = zip(changed.places.tolist(), changed.slots.tolist(), changed.previous.tolist(), strict=True)
        for place, slot, previous in rows:
            old = before[place] if previous < 0 else changes[previous].new
            changes.append(RowChange(name, slot, old, after[place]))
        for held in families:
            yield Altering.of_changes(held.family.change(changes), changed.places)

    # subscriptions

    def plan(self, view: View, id_: str, columns: Mapping[str, Column] | None = None) -> Plan:
        """Return how a view of declared tables is followed, or raise `SubscriptionError`."""
        for table in view.tables:
            if table.name not in self.tables:
                near = closest(table.name, tuple(self.tables))
                hint = f"did you mean `{near}`? If not, declare it" if near else "declare it"
                raise SubscriptionError(
                    f"there is no table `{table.name}`; {hint} first: "
                    f'`engine.table("{table.name}", key="…")`, or `--table {table.name}=KEY`',
                    id_,
                )
        return plan_of(view, id_, columns)

    def add(self, numbers: IdArray, plan: Plan, columns: Mapping[str, Column], id_: str) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""
        self.catch_up()
        key = family_key(plan)
        held = self._families.get(key)
        if held is None:
            held = new_family(plan, self._matcher)
            try:
                held.family.load(self._rows(held.tables))
            except EventError as fault:
                raise SubscriptionError(f"a row of its table stands in the way: {fault}", id_) from fault
            self._families[key] = held
        # What is known of them is entered first, so that they can be removed whatever happens next.
        self._family_of.update(dict.fromkeys(numbers.tolist(), key))
        held.left += len(numbers)
        try:
            held.family.add(numbers, plan, columns)
        except NormalFormError as fault:
            raise SubscriptionError(str(fault), id_) from fault

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove subscriptions; those that are not there are passed over."""
        gone: dict[Any, list[int]] = {}
        for number in numbers:
            key = self._family_of.pop(number, None)
            if key is not None:
                gone.setdefault(key, []).append(number)
                self._untold.pop(number, None)
        for key, some in gone.items():
            held = self._families[key]
            held.family.remove(np.array(some, dtype=np.int64))
            held.left -= len(some)
            if not held.left:
                del self._families[key]

    def answer(self, number: int) -> Answer:
        """Return a view's present answer."""
        if self._is_behind or self._pending:
            self.catch_up()
        return self._families[self._family_of[number]].family.answer(number)

    def explain(self, number: int, held: Subscription, event: Event) -> ViewExplanation:
        """Return how a view stands, and what an event would change."""
        view = held.query
        assert isinstance(view, View)  # noqa: S101 - the caller asked
        outside = tuple(self._outside(held, view, event))
        change = RowChange("", -1, None, None)
        if not outside:
            table = self.tables[event.stream or ""]
            slot, row = table.slot(_row(event)), None if is_deletion(event) else _row(event)
            old = None if slot is None else table.row(slot)
            change = RowChange(table.name, -1 if slot is None else slot, old, row)
        plan = self.plan(view, held.id)
        after = partial(self._answer_after, plan)
        return explain_view(held, plan, self.answer(number), outside, change=change, answer_after=after)

    def _answer_after(self, plan: Plan, change: RowChange) -> Answer:
        """Return what a view would answer if a row changed so."""
        held, alone = new_family(plan, self._matcher), np.zeros(1, dtype=np.int64)
        held.family.load(self._rows(held.tables))
        held.family.add(alone, plan, {})
        if change.old is not None or change.new is not None:
            held.family.change([change])
        return held.family.answer(0)

    def _outside(self, held: Subscription, view: View, event: Event) -> Iterator[str]:
        """Return what keeps an event away from a view."""
        names = [table.name for table in view.tables]
        if event.stream not in names:
            of = f"of stream `{event.stream}`" if event.stream is not None else "of no stream"
            yield f"it looks at {_listed(names)}, the event is {of}"
            return
        self.check(event)
        if self.tables[event.stream].is_late(_row(event), event.end):
            yield f"the event ended at {event.end}, before the row that is held: it is late"
        yield from held.outside_validity(event)

    @property
    def has_untold(self) -> bool:
        """Tell whether anybody did not hear of a change."""
        return bool(self._untold)

    def keep_untold(self, change: ViewChange) -> None:
        """Remember what a subscription was told last, since it does not hear of this change."""
        self._untold.setdefault(change.number, change.old)

    def told_last(self, change: ViewChange) -> Answer:
        """Return what a subscription was told last, now that it hears of a change."""
        return self._untold.pop(change.number, change.old) if self._untold else change.old

    def stats(self) -> HeldViews:
        """Return what is held, all tables and families together."""
        parts = [held.family.stats() for held in self._families.values()]
        tables = self.tables.values()
        return HeldViews(
            subscriptions=len(self),
            families=len(parts),
            tables=len(self.tables),
            rows=sum(map(len, tables)),
            bytes=sum(table.nbytes for table in tables)
            + sum(part.server_bytes + part.listener_bytes + part.answer_bytes for part in parts),
            messages=sum(part.messages for part in parts),
            late=sum(table.late for table in tables),
        )

    def _rows(self, names: Iterable[str]) -> dict[str, Iterable[tuple[int, Row]]]:
        return {name: TableContents(self.tables[name]) for name in names}


def _row(event: Event) -> Row:
    """Return an event as a row, without the word that says whether it is deleted."""
    given = event.attributes
    if any(name in given for name in DELETIONS):
        return {name: value for name, value in given.items() if name not in DELETIONS}
    return given


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
