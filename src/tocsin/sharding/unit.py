"""One part of a shard: an engine that is given events whose turn has come."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from tocsin.engine import Engine
from tocsin.engine.clock import ManualClock
from tocsin.language.check import QuerySource
from tocsin.language.semantics import selected_values
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Notification
from tocsin.model.errors import EventError, SubscriptionError, TocsinError
from tocsin.model.event import STREAM
from tocsin.model.options import ALWAYS
from tocsin.model.queries import SelectItem
from tocsin.sequences.matches import SequenceMatch
from tocsin.sharding.output import OutputWriter
from tocsin.sharding.stateful import StatefulRun, StatefulSubscriptions
from tocsin.sharding.turns import Cause, Turn
from tocsin.structures.packed_strings import PackedStrings
from tocsin.subscriptions.sources import CompiledSubscription
from tocsin.views.table import RowUpdate

_TOGETHER: Final = 10_000  # texts that are added at once
_log = logging.getLogger("tocsin")


class Unit(Engine):
    """An engine with the subscriptions of a group, or those without a key, of one shard.

    It is given the events of sequences in the order of their end, and rows of tables as they come. Its filters meet only
    what its sequences publish. Time does not remove subscriptions: that is for the index to do.
    """

    def __init__(self) -> None:
        super().__init__(clock=ManualClock(ALWAYS))

    # subscriptions

    def declare(self, stateful: StatefulSubscriptions) -> None:
        """Declare tables and ticks; a table that is no more declared, or has another key now, is let go with its rows."""
        for stream, tick in stateful.ticks.items():
            self.stream(stream, tick=tick)
        tables = self._store.views.tables
        for name, stored in list(tables.by_name.items()):
            if stateful.tables.get(name) != stored.key and not stored.readers:
                del tables.by_name[name]
        for name, key in stateful.tables.items():
            self.table(name, key=key)

    def add(self, run: StatefulRun) -> None:
        """Add subscriptions, which see what ends after all that has come."""
        if run.template is not None:
            rows, ids = run.template.rows, PackedStrings(run.ids)
            self._store.restore_template(run.template.template, rows.columns, rows.rows, ids, run.options[0])
            return
        for begin in range(0, len(run), _TOGETHER):
            end = min(begin + _TOGETHER, len(run))
            new: dict[str, CompiledSubscription[Any]] = {}
            for place in range(begin, end):
                new[run.ids[place]] = self._compiled(run.ids[place], run.texts[place], run.options[place])
            self._store.exchange([], new)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove subscriptions."""
        for id_ in ids:
            self._store.withdraw(id_)

    @property
    def ids(self) -> Iterable[str]:
        """Return the ids of all subscriptions."""
        return self._store.registry

    @property
    def feeds_tables(self) -> bool:
        """Tell whether a sequence publishes rows of a table that a view reads."""
        published = {name for name in self._published_names() if name in self._store.views.tables.by_name}
        return bool(published) and len(self._store.views) > 0

    def first_answers(self, ids: Iterable[str], output: OutputWriter) -> None:
        """Write the present answers of new views."""
        for note in self._store.first_answers(ids):
            output.first_answer(note.subscription, note.new)

    # time

    def saw(self, latest: Mapping[int, int]) -> None:
        """Hear of the latest ends of all events: subscriptions that are added from now on see what ends later."""
        self._buffer.saw(latest)

    # events

    def run_sequences(self, turn: Turn, tick: int, output: OutputWriter) -> list[_Published]:
        """Give events to the sequences, write the notifications, and return the events that these publish."""
        published: list[_Published] = []
        if not len(turn) or not len(self._store.sequences):
            return published
        for first, matches in self._store.sequences.process(turn.events, tick):
            rows = (matches.rows + first).tolist()
            ids = self._store.registry.ids_of(matches.subscriptions)
            times = list(zip(matches.starts.tolist(), matches.ends.tolist(), strict=True))
            for i, (id_, row) in enumerate(zip(ids, rows, strict=True)):
                match = matches.match(i)
                output.matched(id_, _event_ids(match), times[i], match.values or None, turn.cause(row))
            published += [_Published(turn.cause(row + first), event) for row, event in matches.published]
        self._match_published(published, output)
        return published

    def update_tables(
        self, rows: Iterable[tuple[Cause, Event]], published: Iterable[_Published], output: OutputWriter
    ) -> None:
        """Apply rows of tables, published ones last, and write the notifications of changed answers."""
        changing = [
            *self._read_rows(rows, lambda cause, event, fault: output.refused(event.end, str(fault), cause)),
            *self._read_rows(published, _log_refused),
        ]
        size = self._store.views.most_at_once
        for begin in range(0, len(changing), size):
            self._update(changing[begin : begin + size], output)

    def match_kept(self, events: Iterable[Event]) -> Iterator[Notification]:
        """Yield the notifications of filters on events that are kept."""
        batch = TimedBatch(list(events))
        yield from self._pipeline.process(batch)

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
            lengths = np.array([self.ticks.length(event.stream) for _, event, _ in changing])[changes.rows]
            reportable = store.is_valid(changes.numbers, ends, ALWAYS, lengths)
        changes = store.views.report(changes, reportable)
        ids = store.registry.ids_of(changes.numbers)
        for i, row in enumerate(changes.rows.tolist()):
            cause, event, _ = changing[row]
            output.changed(ids[i], event, changes.old_answer(i), changes.new_answer(i), cause)

    def _match_published(self, published: list[_Published], output: OutputWriter) -> None:
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
            lengths = np.array([self.ticks.length(events.stream(row)) for row in found.rows.tolist()])
            found = found.take(store.is_valid(found.numbers, events.ends[found.rows], ALWAYS, lengths))
        selects = store.queries.selects_of(found.numbers)
        for row, id_, select in zip(
            found.rows.tolist(), store.registry.ids_of(found.numbers), selects, strict=True
        ):
            cause, event = published[row]
            values = selected(select, event)
            output.matched(id_, (event.id,), (event.start, event.end), values, cause)

    def _published_names(self) -> Iterator[str]:
        for query in self._store.queries.shapes():
            publish = getattr(query, "publish", None)
            if publish is not None:
                yield publish

    def _compiled(self, id_: str, text: QuerySource, options: Any) -> CompiledSubscription[Any]:
        try:
            return self._store.compile(id_, text, options)
        except SubscriptionError:
            raise
        except TocsinError as fault:
            raise SubscriptionError(str(fault), id_) from fault


class _Published(NamedTuple):
    """An event that a sequence published, and the event that completed the sequence."""

    cause: Cause
    event: Event


def selected(select: tuple[SelectItem, ...], event: Event) -> Mapping[str, Any] | None:
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
