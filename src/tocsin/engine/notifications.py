"""Notifications in columns: objects are created on iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol, overload

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.display.text import summary
from tocsin.engine.notification_columns import (
    EVENT_COLUMNS,
    NOTIFICATION_COLUMNS,
    json_text,
    notification_columns,
    object_columns,
    with_event_columns,
)
from tocsin.formats.column_blocks import integer_array
from tocsin.formats.frames import ArrowColumns
from tocsin.formats.notifications import encode_json, event_record, notification_line
from tocsin.language.semantics import selected_values
from tocsin.matching import IdArray
from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model import Event, Notification
from tocsin.model.event import STREAM
from tocsin.model.queries import SelectItem
from tocsin.model.subscription import Answer
from tocsin.model.ticks import StreamTicks
from tocsin.views.answer_changes import AnswerChanges, number_answer

_SHOWN: Final = 2  # notifications in the representation


class NotificationPart(Protocol):
    """The notifications of one stage, by the row of the event that caused each."""

    @property
    def rows(self) -> IdArray:
        """Return, for each notification, the row of its event."""

    @property
    def ids(self) -> list[str]:
        """Return the id of each notification's subscription."""

    def notification(self, i: int) -> Notification:
        """Return the i-th notification."""

    def lines(self, ticks: StreamTicks | None) -> Callable[[int], bytes]:
        """Return a function that gives the i-th notification as a line of JSON; what several share is encoded once."""

    def to_arrow(self, *, with_events: bool) -> pa.Table:
        """Return the NOTIFICATION_COLUMNS, and the EVENT_COLUMNS where they are asked for."""


class FilterNotifications(Struct, frozen=True):
    """Notifications of filters: the event, or the selected values."""

    rows: IdArray
    scores: NDArray[np.float64] | None
    events: TimedBatch
    positions: IdArray  # of the notifications' events among `events`
    ids: list[str]
    selects: list[tuple[SelectItem, ...]] | None  # none selects anything
    generation: int

    def notification(self, i: int) -> Notification:
        """Return the i-th notification."""
        event, scores = self.events.event(int(self.positions[i])), self.scores
        select = self.selects[i] if self.selects is not None else ()
        return Notification(
            subscription=self.ids[i],
            event_ids=(event.id,),
            events=(event,),
            values=_select_values(select, event) if select else None,
            start=event.start,
            end=event.end,
            generation=self.generation,
            score=None if scores is None else float(scores[i]),
        )

    def read_events(self) -> None:
        """Read all events at once, which is quicker than one by one."""
        self.events.read_ahead(np.unique(self.positions))

    def lines(self, ticks: StreamTicks | None) -> Callable[[int], bytes]:
        """Return a function that gives the i-th notification as a line of JSON."""
        self.read_events()
        positions, ids, selects, scores = self.positions.tolist(), self.ids, self.selects, self.scores
        events: dict[int, tuple[bytes, bytes]] = {}
        texts: dict[str, bytes] = {}
        end = b'"generation":%d}\n' % self.generation

        def line(i: int) -> bytes:
            id_, position = ids[i], positions[i]
            subscription = texts.get(id_)
            if subscription is None:
                subscription = texts[id_] = b'{"subscription":' + encode_json(id_)
            encoded = events.get(position)
            if encoded is None:
                encoded = events[position] = _encode_event(self.events.event(position), ticks)
            values, score = b"", b""
            if selects is not None and selects[i]:
                selected = _select_values(selects[i], self.events.event(position))
                values = b'"values":' + encode_json(selected) + b","
            if scores is not None:
                score = b'"score":' + encode_json(float(scores[i])) + b","
            return b"".join((subscription, encoded[0], values, encoded[1], score, end))

        return line

    def to_arrow(self, *, with_events: bool) -> pa.Table:
        """Return the columns; no event becomes an object unless it is asked for, or a filter selects something of it."""
        events, positions, count = self.events, self.positions, len(self.rows)
        stream = events.single_stream
        columns: dict[str, Any] = {
            "subscription": self.ids,
            "start": events.starts[positions],
            "end": events.ends[positions],
            "generation": np.full(count, self.generation),
            "stream": [stream] * count
            if stream is not None
            else [events.stream(position) for position in positions.tolist()],
        }
        if self.scores is not None:
            columns["score"] = self.scores
        if self.selects is not None:
            self.read_events()
            found = zip(self.selects, positions.tolist(), strict=True)
            columns["values"] = [
                json_text(_select_values(items, events.event(position))) if items else None
                for items, position in found
            ]
        table = notification_columns(columns, count)
        return self._with_events(table) if with_events else table

    def _with_events(self, table: pa.Table) -> pa.Table:
        self.read_events()
        distinct, which = np.unique(self.positions, return_inverse=True)
        made = list(map(self.events.event, distinct.tolist()))
        events = [made[i] for i in which.tolist()]
        return with_event_columns(table, [event.id for event in events], events)


class SequenceNotifications(Struct, frozen=True):
    """Notifications of sequences, and of filters on the streams that they publish.

    They are made at once, because a match is decoded from the state of its automaton, which further events change.
    """

    rows: IdArray
    notifications: list[Notification]

    @property
    def ids(self) -> list[str]:
        """Return the id of each notification's subscription."""
        return [notification.subscription for notification in self.notifications]

    def notification(self, i: int) -> Notification:
        """Return the i-th notification."""
        return self.notifications[i]

    def lines(self, ticks: StreamTicks | None) -> Callable[[int], bytes]:
        """Return a function that gives the i-th notification as a line of JSON."""
        return lambda i: notification_line(self.notification(i), ticks)

    def to_arrow(self, *, with_events: bool) -> pa.Table:
        """Return the columns."""
        return object_columns(self.notifications, with_events=with_events)


class ViewNotifications(Struct, frozen=True):
    """Notifications of views: the answers before and after a row changed."""

    rows: IdArray
    changes: AnswerChanges
    events: TimedBatch  # the rows that `changes` counts
    ids: list[str]
    generation: int

    def notification(self, i: int) -> Notification:
        """Return the i-th notification."""
        changes, event = self.changes, self.events.event(self.changes.rows.item(i))
        removed, added = changes.differences(i)
        return Notification(
            subscription=self.ids[i],
            event_ids=(event.id,),
            events=(event,),
            old=number_answer(changes.old.item(i)),
            new=number_answer(changes.new.item(i)),
            start=event.start,
            end=event.end,
            generation=self.generation,
            view=True,
            removed=removed,
            added=added,
        )

    def lines(self, ticks: StreamTicks | None) -> Callable[[int], bytes]:
        """Return a function that gives the i-th notification as a line of JSON."""
        return lambda i: notification_line(self.notification(i), ticks)

    def to_arrow(self, *, with_events: bool) -> pa.Table:
        """Return the columns."""
        return object_columns(list(map(self.notification, range(len(self.rows)))), with_events=with_events)


class Notifications(ArrowColumns, Sequence[Notification]):
    """Notifications in columns, those of the first event first; an object is made when somebody asks for it.

    For one event, they come in the order of the stages: filters, sequences with the filters on published streams, views.

    >>> from tocsin import Engine
    >>> engine = Engine()
    >>> _ = engine.subscribe("price > 100", id="high")
    >>> found = engine.publish_many([{"price": 99}, {"price": 101}, {"price": 102}])
    >>> len(found), found[0].subscription, [note.events[0].attributes["price"] for note in found]
    (2, 'high', [101, 102])
    """

    def __init__(self, parts: Sequence[NotificationPart]) -> None:
        self._parts: list[NotificationPart] = []
        self._first_rows: list[int] = []  # of the batch that a part belongs to
        self.total = 0
        for part in parts:
            if len(part.rows):
                self._parts.append(part)
                self._first_rows.append(0)
                self.total += len(part.rows)
        # the part of each notification and its position there; None if there is one part, in its order
        self._order: tuple[IdArray, IdArray] | None = None
        if len(self._parts) > 1:
            order = np.argsort(np.concatenate([part.rows for part in self._parts]), kind="stable")
            which, positions = self._positions()
            self._order = which[order], positions[order]

    @classmethod
    def join(cls, batches: Sequence[tuple[int, Notifications]]) -> Notifications:
        """Return the notifications of several batches, each given with the number of its first row."""
        joined, orders = cls(()), []
        for row, batch in batches:
            if batch:
                orders.append(batch._add_to(joined, row))  # noqa: SLF001 - of this class
        if orders:
            joined._order = np.concatenate([o[0] for o in orders]), np.concatenate([o[1] for o in orders])
        return joined

    def _add_to(self, joined: Notifications, row: int) -> tuple[IdArray, IdArray]:
        """Add the parts to those of several batches; return their order there."""
        which, positions = self._positions() if self._order is None else self._order
        before = len(joined._parts)
        joined.total += self.total
        joined._parts += self._parts
        joined._first_rows += [row + first for first in self._first_rows]
        return which + before, positions

    def _positions(self) -> tuple[IdArray, IdArray]:
        """Return the part and the position in it of each notification, part by part."""
        counts = [len(part.rows) for part in self._parts]
        return np.repeat(np.arange(len(counts)), counts), np.concatenate([np.arange(n) for n in counts])

    def __len__(self) -> int:
        return self.total

    def __iter__(self) -> Iterator[Notification]:
        parts = self._parts
        for part in parts:
            if isinstance(part, FilterNotifications):
                part.read_events()
        if self._order is None:
            for part in parts:
                yield from map(part.notification, range(len(part.rows)))
        else:
            for which, position in zip(*map(np.ndarray.tolist, self._order), strict=True):
                yield parts[which].notification(position)

    def subscriptions(self) -> list[str]:
        """Return the id of each notification's subscription; no notification becomes an object for it."""
        ids = [id_ for part in self._parts for id_ in part.ids]
        if self._order is None:
            return ids
        starts = np.cumsum([0, *(len(part.rows) for part in self._parts)])
        return list(map(ids.__getitem__, (starts[self._order[0]] + self._order[1]).tolist()))

    def __repr__(self) -> str:
        from tocsin.engine.display import notification_values  # noqa: PLC0415 - to look at it is rare

        shown = (self[i] for i in range(min(_SHOWN, len(self))))
        first = [f"{note.subscription} ({notification_values(note, 50)})" for note in shown]
        more = ["…"] if len(self) > _SHOWN else []
        return summary(self, [f"{len(self):,}"], first=[*first, *more])

    def _repr_html_(self) -> str:
        from tocsin.engine.display import notifications_table  # noqa: PLC0415 - only notebooks need it

        return notifications_table(self)

    def keep_events(self) -> None:
        """Read the events of filters now, since what they are read from may change."""
        for part in self._parts:
            if isinstance(part, FilterNotifications):
                part.read_events()
                for position in np.unique(part.positions).tolist():
                    part.events.event(position)

    def json_lines(self, ticks: StreamTicks | None = None) -> Iterator[bytes]:
        """Yield each notification as a line of JSON; an event is encoded once.

        Times are ticks; with the engine's `ticks`, those that count from 1970 are texts of ISO 8601, as `tocsin match` has them.
        """
        lines = [part.lines(ticks) for part in self._parts]
        if self._order is None:
            for line, part in zip(lines, self._parts, strict=True):
                yield from map(line, range(len(part.rows)))
        else:
            for which, position in zip(*map(np.ndarray.tolist, self._order), strict=True):
                yield lines[which](position)

    def with_events(self) -> pa.Table:
        """Return the table of `to_arrow` with two more columns: the last event's id and its attributes, as JSON."""
        return self._table(with_events=True)

    def to_list(self) -> list[Notification]:
        """Return all notifications as objects."""
        if self._order is None and len(self._parts) == 1:
            part = self._parts[0]
            if isinstance(part, FilterNotifications) and isinstance(part.events, TimedRows):
                part.read_events()
            return list(map(part.notification, range(len(part.rows))))
        return list(self)

    @overload
    def __getitem__(self, index: int) -> Notification: ...

    @overload
    def __getitem__(self, index: slice) -> list[Notification]: ...

    def __getitem__(self, index: int | slice) -> Notification | list[Notification]:
        """Return one notification, or a list of those in a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = range(self.total)[index]
        if self._order is None:
            return self._parts[0].notification(position)
        which, positions = self._order
        part: NotificationPart = self._parts[int(which[position])]
        return part.notification(int(positions[position]))

    def to_arrow(self) -> pa.Table:
        """Return the notifications as an Arrow table, one row each.

        `row` counts the published events from 0. `values` of a select list, the `witness` of a sequence and the `answer` of
        a view are JSON texts, null where there is none.
        """
        return self._table(with_events=False)

    def _table(self, *, with_events: bool) -> pa.Table:
        columns = [("row", pa.int64()), *NOTIFICATION_COLUMNS, *(EVENT_COLUMNS if with_events else ())]
        tables = [pa.table({name: pa.nulls(0, kind) for name, kind in columns})]
        for part, first in zip(self._parts, self._first_rows, strict=True):
            table = part.to_arrow(with_events=with_events)
            tables.append(table.add_column(0, "row", integer_array(part.rows + first)))
        joined = pa.concat_tables(tables)
        if self._order is None:
            return joined
        which, positions = self._order
        starts = np.cumsum([0, *(len(part.rows) for part in self._parts)])
        return joined.take(integer_array(starts[which] + positions))


def first_answer(id_: str, answer: Answer, generation: int) -> Notification:
    """Return the notification of a view's present answer."""
    return Notification(id_, (), new=answer, generation=generation, view=True)


def _encode_event(event: Event, ticks: StreamTicks | None) -> tuple[bytes, bytes]:
    """Return what a notification says of its event before and after the selected values."""
    record = event_record(event, ticks)
    times = b'"start":%b,"end":%b,' % (encode_json(record["start"]), encode_json(record["end"]))
    return (
        b',"event_ids":[' + encode_json(event.id) + b"],",
        b'"events":[' + encode_json(record) + b"]," + times,
    )


def _select_values(items: tuple[SelectItem, ...], event: Event) -> dict[str, Any]:
    attributes = event.attributes
    if event.stream is not None:
        attributes = {**attributes, STREAM: event.stream}
    return selected_values(items, attributes, event.attributes)
