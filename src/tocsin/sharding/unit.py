"""One part of a shard: sequences, views and filters on published streams, given events whose turn has come."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tocsin.engine.clock import ManualClock
from tocsin.engine.filter_runtime import FilterRuntime
from tocsin.engine.saving.runs import restore_run
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.index.stateful import StatefulRun, StatefulSubscriptions
from tocsin.language.semantics import selected_values
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event
from tocsin.model.errors import EventError
from tocsin.model.event import STREAM
from tocsin.model.options import ALWAYS
from tocsin.model.queries import SelectItem, Sequence
from tocsin.model.ticks import StreamTicks
from tocsin.sequences.matches import SequenceMatch
from tocsin.sequences.running.matcher import AutomatonMatcher
from tocsin.sequences.runtime import SequenceRuntime
from tocsin.sharding.numbers import NumberTable
from tocsin.sharding.output import OutputWriter
from tocsin.sharding.router import unread_key
from tocsin.sharding.turns import Cause, Turn
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Int64s
from tocsin.structures.compact_parts import PartsReader, PartsWriter
from tocsin.views.runtime import ViewRuntime
from tocsin.views.table import RowUpdate

_log = logging.getLogger("tocsin")


class Unit:
    """The subscriptions of a group, or those without a key, of one shard.

    It is given the events of sequences in the order of their end, and rows of tables as they come. Its filters meet only
    what its sequences publish. Time does not remove subscriptions: that is for the index to do. The caller makes one call
    at a time.
    """

    def __init__(self, memory_limit: int | None = None) -> None:
        self._latest = _LatestEnds()
        self._ticks = StreamTicks()
        self._store = SubscriptionStore(
            FilterRuntime(None, None),
            SequenceRuntime(self._ticks, self._latest, lambda: AutomatonMatcher(memory_limit=memory_limit)),
            ViewRuntime(),
            ManualClock(ALWAYS),
            retention=0,
        )
        self._numbers = NumberTable()  # those of the index, and those of the store

    # subscriptions

    def declare(self, stateful: StatefulSubscriptions) -> None:
        """Declare tables and ticks; a table without views that is no more declared so is let go, with its rows."""
        for stream, tick in stateful.ticks.items():
            self._store.sequences.declare(stream, tick)
        tables = self._store.views.tables
        for name, stored in list(tables.by_name.items()):
            if stateful.tables.get(name) != stored.key and not stored.readers:
                del tables.by_name[name]
        for name, key in stateful.tables.items():
            tables.declare(name, key)

    def add(self, run: StatefulRun) -> None:
        """Add subscriptions, which see what ends after all that has come."""
        restore_run(run.run, self._store)
        self._numbers.add(run.numbers, self._store.registry.numbers()[-len(run) :])

    def remove(self, numbers: Int64s) -> None:
        """Remove subscriptions by their numbers in the index."""
        gone = self._numbers.take_out(numbers)
        if len(gone):
            self._store.exchange(self._store.registry.ids_of(gone), {})

    @property
    def numbers(self) -> Int64s:
        """Return the numbers of all subscriptions in the index, ascending."""
        return self._numbers.given

    @property
    def feeds_tables(self) -> bool:
        """Tell whether a sequence publishes rows of a table that some view reads."""
        tables = self._store.views.tables.by_name
        published = (query.publish for query in self._store.queries.shapes() if isinstance(query, Sequence))
        return any(name in tables for name in published) and len(self._store.views) > 0

    def first_answers(self, run: StatefulRun, output: OutputWriter) -> None:
        """Write the present answers of new views."""
        if len(self._store.views):
            for note in self._store.first_answers(run.run.ids):
                output.first_answer(note.subscription, note.new)

    # time

    def saw(self, latest: Mapping[int, int]) -> None:
        """Hear of the latest ends of all events: subscriptions that are added from now on see what ends later."""
        self._latest.ends = latest

    # events

    def run_sequences(self, turn: Turn, tick: int, output: OutputWriter) -> list[Published]:
        """Give events to the sequences, write the notifications, and return the events that these publish."""
        published: list[Published] = []
        if not len(turn) or not len(self._store.sequences):
            return published
        for first, matches in self._store.sequences.process(turn.events, tick):
            rows = (matches.rows + first).tolist()
            ids = self._store.registry.ids_of(matches.subscriptions)
            times = list(zip(matches.starts.tolist(), matches.ends.tolist(), strict=True))
            for i, (id_, row) in enumerate(zip(ids, rows, strict=True)):
                match = matches.match(i)
                output.matched(id_, _event_ids(match), times[i], match.values or None, turn.cause(row))
            published += [Published(turn.cause(row + first), event) for row, event in matches.published]
        self._match_published(published, output)
        return published

    def update_tables(
        self, rows: Iterable[tuple[Cause, Event]], published: Iterable[Published], output: OutputWriter
    ) -> None:
        """Apply rows of tables, published ones last, and write the notifications of changed answers."""
        changing = [
            *self._read_rows(rows, lambda cause, event, fault: output.refused(event.end, str(fault), cause)),
            *self._read_rows(published, _log_refused),
        ]
        size = self._store.views.most_at_once
        for begin in range(0, len(changing), size):
            self._update(changing[begin : begin + size], output)

    def _read_rows(
        self, rows: Iterable[tuple[Cause, Event]], refuse: Callable[[Cause, Event, EventError], None]
    ) -> Iterator[tuple[Cause, Event, RowUpdate]]:
        """Yield the events that are rows of tables."""
        for cause, event in rows:
            try:
                update = self._store.views.read(event)
            except EventError as fault:
                refuse(cause, event, fault)
            else:
                if update is not None:
                    yield cause, event, update

    def _update(self, changing: list[tuple[Cause, Event, RowUpdate]], output: OutputWriter) -> None:
        store = self._store
        changes = store.views.process([update for _, _, update in changing])
        reportable = None
        if store.registry.has_validity and len(changes.rows):
            ends = np.array([event.end for _, event, _ in changing], dtype=np.int64)[changes.rows]
            lengths = np.array([self._ticks.length(event.stream) for _, event, _ in changing])[changes.rows]
            reportable = store.is_valid(changes.numbers, ends, ALWAYS, lengths)
        changes = store.views.report(changes, reportable)
        ids = store.registry.ids_of(changes.numbers)
        for i, row in enumerate(changes.rows.tolist()):
            cause, event, _ = changing[row]
            output.changed(ids[i], event, changes.old_answer(i), changes.new_answer(i), cause)

    def _match_published(self, published: list[Published], output: OutputWriter) -> None:
        """Write the notifications of filters on the streams that sequences publish."""
        store = self._store
        if not published or not store.filter_count:
            return
        events = TimedBatch([one.event for one in published])
        found = store.filters.process(events)
        own = [
            store.queries.stream(number) == events.stream(row)
            for row, number in zip(found.rows.tolist(), found.numbers.tolist(), strict=True)
        ]
        found = found.take(np.array(own, dtype=np.bool_))
        if store.registry.has_validity:
            lengths = np.array([self._ticks.length(events.stream(row)) for row in found.rows.tolist()])
            found = found.take(store.is_valid(found.numbers, events.ends[found.rows], ALWAYS, lengths))
        ids, selects = store.registry.ids_of(found.numbers), store.queries.selects_of(found.numbers)
        for row, id_, select in zip(found.rows.tolist(), ids, selects, strict=True):
            cause, event = published[row]
            output.matched(id_, (event.id,), (event.start, event.end), _selected(select, event), cause)

    # saving

    def snapshot(self) -> Parts:
        """Return the state: partial matches, tables and last answers, with the numbers of the subscriptions."""
        given, own = self._numbers.given, self._numbers.own
        numbers = PartsWriter()
        numbers.integers("steps", np.diff(given, prepend=0))
        return Parts.join(
            {},
            {
                "numbers": numbers.parts(),
                "sequences": self._store.sequences.snapshot(own),
                "views": self._store.views.snapshot(own),
            },
        )

    @staticmethod
    def saved_numbers(state: Parts) -> Int64s:
        """Return the numbers of the subscriptions that a state has something of."""
        steps = PartsReader(state.part("numbers")).integers("steps")
        return np.cumsum(steps)

    def restore(self, state: Parts) -> None:
        """Take up a state; of subscriptions that are not here nothing is left."""
        own = self._numbers.own_of(self.saved_numbers(state))
        self._store.sequences.restore(state.part("sequences"), own)
        self._store.views.restore(state.part("views"), own)


class Published(NamedTuple):
    """An event that a sequence published, and the event that completed the sequence."""

    cause: Cause
    event: Event


class _LatestEnds:
    """The latest ends of all events. The runtime of the shard has put them into order."""

    def __init__(self) -> None:
        self.ends: Mapping[int, int] = {}

    def latest(self, streams: Iterable[str], tick: int) -> int:
        return max(self.ends.get(key, ALWAYS) for key in (tick, *map(unread_key, streams)))

    def is_late(self, event: Event) -> bool:  # noqa: ARG002
        return False

    def forget(self, stream: str) -> None:
        """Do nothing: the ends are those of all streams."""


def _selected(select: tuple[SelectItem, ...], event: Event) -> Mapping[str, Any] | None:
    """Return what a filter selects of an event; None if it is the whole event."""
    if not select:
        return None
    attributes = event.attributes if event.stream is None else {**event.attributes, STREAM: event.stream}
    return selected_values(select, attributes, event.attributes)


def _log_refused(_: Cause, event: Event, fault: EventError) -> None:
    _log.warning("an event that was published as `%s` is no row of that table: %s", event.stream, fault)


def _event_ids(match: SequenceMatch) -> list[str]:
    """Return the ids of the first and the last event of each step."""
    ids: list[str] = []
    for step in match.steps:
        ids.append(step.first.id)
        if step.last is not step.first:
            ids.append(step.last.id)
    return ids
