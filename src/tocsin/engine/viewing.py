"""The part of an engine that holds tables, and what is known of the views of them."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tocsin.engine.answers import view_notification
from tocsin.engine.results import AnswerChanges, Trial
from tocsin.engine.subscribing import Subscribing
from tocsin.engine.tables import table_events, table_times
from tocsin.engine.views import Views
from tocsin.formats import Fault
from tocsin.model import Event, View
from tocsin.model.errors import EventError, SubscriptionError
from tocsin.model.subscription import Answer


class Viewing(Subscribing):
    """Holds tables beside subscriptions; all calls are safe from several threads."""

    def table(self, name: str, *, key: str | Sequence[str]) -> None:
        """Let a stream be a table too: an event of it replaces the row with the same key, whole.

        `key` names the attribute that tells rows apart, or several. What the stream brought before is not in the table.
        An event that ended before the row that is held is late, and changes nothing.

        >>> from tocsin import Engine
        >>> engine = Engine()
        >>> engine.table("stock", key="symbol")
        >>> engine.subscribe("select min(per) from table stock where risk between 20 and 60", id="best").answer
        >>> [(note.old, note.new) for note in engine.publish({"symbol": "A", "risk": 30, "per": 8}, stream="stock")]
        [(None, 8)]
        """
        with self._lock:
            self._views.declare(name, key)

    def answer(self, id: str) -> Answer:
        """Return the present answer of a view."""
        with self._lock:
            self._expire()
            number = self._held.book.number(id)
            if not self._held.book.is_view(number):
                raise SubscriptionError("it is no view, and has no answer", id)
            return self._views.answer(number)

    def upsert(self, rows: Any, *, stream: str, time: str | None = None) -> AnswerChanges:
        """Put an Arrow table's rows into a table, and return, as columns, the answers that changes.

        The rows reach no filter and no sequence. `time` names the column that says when each ended; without it, all end
        now. Nothing is taken of a table with a row that cannot be in it, or with other columns than plain ones.
        """
        read = table_events(rows, stream)
        if read is None:
            raise EventError(
                "only an Arrow table of plain columns is taken as it is; publish what is not one"
            )
        if read.faults:
            place, fault = min(read.faults.items())
            raise EventError(f"row {place} is no event: {fault}; nothing was taken")
        if time is None:
            ends = np.full(len(read), self._reader.now(stream), dtype=np.int64)
        else:
            _, ends, faults = table_times(read, time, None, self._reader.ticks)
            if faults:
                place, fault = min(faults.items())
                raise EventError(f"row {place} is no event: {fault}; nothing was taken")
        with self._lock:
            self._expire()
            if not self._views.is_table(stream):
                raise EventError(
                    f'`{stream}` is no table; declare it first: `engine.table("{stream}", key="…")`'
                )
            return self._publication.upsert(stream, read.table, ends)

    def save_tables(self, path: str | PathLike[str]) -> None:
        """Write all tables, as they stand, to a file; subscriptions are not in it."""
        with self._lock:
            self._views.save(Path(path))

    def load_tables(self, path: str | PathLike[str]) -> tuple[str, ...]:
        """Declare the tables that a file holds, with its rows, and return their names; done before they have views."""
        with self._lock:
            return self._views.load(Path(path))


def try_view(query: View, events: Sequence[Event], faults: tuple[Fault, ...], views: Views) -> Trial:
    """Return what a view would have been told of these events alone, by tables that are empty at first."""
    alone = Views()
    for table in views.tables:
        alone.declare(table.name, table.key)
    alone.add(np.zeros(1, dtype=np.int64), alone.plan(query, "test"), {}, "test")
    refused: list[Fault] = []
    for place, event in enumerate(events):
        try:
            alone.check(event)
            alone.take(event, place, 0)
        except EventError as fault:
            refused.append(Fault("event", place + 1, str(fault)))
    altered = alone.release()
    notes = tuple(view_notification("test", one, one.change.old, 0) for one in altered)
    return Trial(tuple(one.event for one in altered), len(events), (*faults, *refused), notes)
