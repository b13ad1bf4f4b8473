"""Whom events concern: filters at once, sequences as soon as they are completed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

import numpy as np
import pyarrow as pa
from msgspec.structs import replace as changed
from numpy.typing import NDArray

from tocsin.engine.altering import Altering
from tocsin.engine.answers import view_notification
from tocsin.engine.clock import Clock
from tocsin.engine.filters import notification
from tocsin.engine.history import History
from tocsin.engine.holdings import Holdings
from tocsin.engine.lookup import Lookup
from tocsin.engine.ranked import Wish, best_of
from tocsin.engine.results import AnswerChanges, Followed, Values
from tocsin.engine.tables import TableRows
from tocsin.engine.timeline import Tell
from tocsin.formats import Fault
from tocsin.matching import ConjunctionBatch, EventBatch, IdArray
from tocsin.model import Event, Notification
from tocsin.model.errors import EventError
from tocsin.model.event import is_deletion, matchable
from tocsin.sequences.matches import SequenceMatches, sequence_notification
from tocsin.sequences.timed_batch import TimedBatch
from tocsin.views.answer_changes import same_answer

_log = logging.getLogger("tocsin")


class Publication:
    """Makes the notifications of events, and counts both. Called under the engine's lock.

    What a sequence tells comes after what filters are told of the event that completed it, what filters are told
    of what it published comes after that, and what views are told comes last.
    """

    def __init__(self, held: Holdings, lookup: Lookup, clock: Clock) -> None:
        self._held = held
        self._lookup = lookup
        self._clock = clock
        self.history = History()
        self.published = 0
        self.notified = 0

    def events(
        self, events: list[Event], report: Callable[[Fault], object] | None = None, wish: Wish | None = None
    ) -> list[Notification]:
        """Return what is told of events, as if they came one by one: what expires between them hears no later one."""
        notes = _Notes()
        given = [] if wish is None else wish.checked(1)
        check = self._held.views.check if self._held.views.tables else None
        for event, found in zip(events, self._lookup.match(events, report, check), strict=True):
            if found is None:
                continue
            self.published += 1
            now = self._clock.now()
            if is_deletion(event):
                self._held.views.take(event, self._held.timelines.mark(), now)
                continue
            valid = self._held.valid(found, event.end, now)
            mark = self._held.timelines.take(event)
            if wish is None:
                notes.add(mark, [self._note(number, event) for number in valid])
            else:
                best = best_of(valid, matchable(event), self._held.book, wish.top, given[0])
                notes.add(mark, [changed(self._note(number, event), score=score) for number, score in best])
            self._held.views.take(event, mark, now)
            self.history.add(event, now)
            self._clock.saw(event.end)
        self._held.timelines.release(self._telling(notes))
        return self._counted(notes)

    def flush(self) -> list[Notification]:
        """Return what is told once all events that wait have reached the sequences."""
        notes = _Notes()
        self._held.timelines.flush(self._telling(notes))
        return self._counted(notes)

    def rows(self, rows: TableRows) -> list[Notification]:
        """Return what is told of a table's rows, of which only those become events that somebody is told of."""
        self.published += len(rows.table) - len(rows.table.faults)
        notes = _Notes()
        if self._held.has_filters:
            self._match_rows(rows, notes)
        self._held.timelines.take_rows(rows, self._telling(notes))
        if (latest := rows.latest) is not None:
            self._clock.saw(latest)
        return self._counted(notes)

    def _match_rows(self, rows: TableRows, notes: _Notes) -> None:
        found = self._held.matcher.match(rows.table)
        mark = self._held.timelines.next_mark
        for place in np.flatnonzero(np.diff(found.offsets)).tolist():
            numbers = self._held.valid(found[place].tolist(), int(rows.ends[place]), self._clock.now())
            if numbers:
                notes.add(mark + place, [self._note(number, rows.event(place)) for number in numbers])

    def follow(self, rows: TableRows) -> Followed:
        """Return, as columns, the sequences that a table's rows complete."""
        if rows.table.faults:
            place, fault = min(rows.table.faults.items())
            raise EventError(f"row {place} is no event: {fault}; nothing was taken")
        first = self._held.timelines.next_mark
        columns: list[tuple[tuple[str, ...], IdArray, IdArray, IdArray, list[Values]]] = []

        def tell(marks: Sequence[int], _: TimedBatch, found: SequenceMatches) -> None:
            numbers, which = np.unique(found.subscriptions, return_inverse=True)
            ids = [self._held.book.id(number) for number in numbers.tolist()]
            names = tuple(map(ids.__getitem__, which.tolist()))
            places = np.asarray(marks, dtype=np.int64)[found.rows] - first
            values: list[Values] = [values or None for values in found.values()]
            columns.append((names, places, found.starts, found.ends, values))

        self._held.timelines.follow(rows, tell)
        self.published += len(rows.ends)
        if len(rows.ends):
            self._clock.saw(int(rows.ends[-1]))
        told = Followed.joined(columns)
        self.notified += len(told)
        return told

    def upsert(self, stream: str, rows: pa.Table, ends: NDArray[np.int64]) -> AnswerChanges:
        """Put rows into a table, and return the answers that changes, as columns."""
        held, now = self._held, self._clock.now()
        altered = held.views.upsert(stream, rows, ends)
        self.published += len(ends)
        if held.book.has_terms or held.views.has_untold:
            altered = altered.take(self._heard(altered, ends, now))
        if len(ends):
            self._clock.saw(int(ends.max()))
        self.notified += len(altered.rows)
        return AnswerChanges(altered.rows, held.ids()[altered.numbers], altered.old, altered.new)

    def _heard(self, altered: Altering, ends: NDArray[np.int64], now: int) -> NDArray[np.bool_]:
        """Tell who hears of a change; what those were told last who do not, or did not before, is remembered."""
        views = self._held.views
        kept = np.zeros(len(altered.rows), dtype=np.bool_)
        for place, row in enumerate(altered.rows.tolist()):
            change = altered.change(place)
            if not self._held.valid([change.number], int(ends[row]), now):
                views.keep_untold(change)
                continue
            old = views.told_last(change)
            kept[place] = old is change.old or not same_answer(old, change.new)
            altered.give_old(place, old)
        return kept

    def meet_history(self, added: ConjunctionBatch) -> tuple[Notification, ...]:
        """Return what new filters are told of the events that are still kept."""
        if not len(self.history) or not len(added):
            return ()
        alone = self._held.new_matcher()
        alone.add(added)
        kept = list(self.history)
        matches = alone.match(EventBatch.of(matchable(event) for event in kept)).to_lists()
        notes = [
            self._note(number, event)
            for event, found in zip(kept, matches, strict=True)
            for number in self._held.valid(found, event.end)
        ]
        self.notified += len(notes)
        return tuple(notes)

    def _note(self, number: int, event: Event) -> Notification:
        book = self._held.book
        return notification(book.id(number), book.filter(number), event, self._held.generation)

    def _telling(self, notes: _Notes) -> Tell:
        """Return what turns witnesses, and what they publish, into notes."""

        def tell(marks: Sequence[int], _: TimedBatch, found: SequenceMatches) -> None:
            told = [*self._of_witnesses(found), *self._of_published(found)]
            for place, heard in sorted(told, key=itemgetter(0)):
                notes.add(marks[place], heard)
            self._change_tables(marks, found)

        return tell

    def _change_tables(self, marks: Sequence[int], found: SequenceMatches) -> None:
        """Let events that sequences published change the tables of their names; one that is no row is logged."""
        views = self._held.views
        for place, event in found.published if views.tables else ():
            try:
                views.check(event)
            except EventError as fault:
                _log.warning(
                    "an event that was published as `%s` is no row of that table: %s", event.stream, fault
                )
            else:
                views.take(event, marks[place], self._clock.now())

    def _of_witnesses(self, found: SequenceMatches) -> Iterator[tuple[int, list[Notification]]]:
        """Return what sequences are told, by the place of the event that completed them."""
        places, starts, ends = found.rows.tolist(), found.starts.tolist(), found.ends.tolist()
        for row, number in enumerate(found.subscriptions.tolist()):
            told = found.match(row), starts[row], ends[row], self._held.generation
            yield places[row], [sequence_notification(self._held.book.id(number), *told)]

    def _of_published(self, found: SequenceMatches) -> Iterator[tuple[int, list[Notification]]]:
        """Return what filters on a published name are told, by the place of the event that completed it."""
        events = [event for _, event in found.published]
        if not events:
            return
        for (place, event), numbers in zip(found.published, self._lookup.match(events), strict=True):
            asked = [n for n in numbers or () if self._held.book.filter(n).stream == event.stream]
            yield place, [self._note(number, event) for number in self._held.valid(asked, event.end)]

    def _of_views(self) -> Iterator[tuple[int, Notification]]:
        """Return what views are told of the changes that have come, with the marks of these."""
        views, book = self._held.views, self._held.book
        for altered in views.release():
            change = altered.change
            if not self._held.valid([change.number], altered.event.end, altered.now):
                views.keep_untold(change)
                continue
            old = views.told_last(change)
            if old is change.old or not same_answer(old, change.new):
                yield (
                    altered.mark,
                    view_notification(book.id(change.number), altered, old, self._held.generation),
                )

    def _counted(self, notes: _Notes) -> list[Notification]:
        for mark, note in self._of_views():
            notes.add(mark, [note])
        told = notes.in_order()
        self.notified += len(told)
        return told


class _Notes:
    """Notifications by the mark of the event that they come after."""

    def __init__(self) -> None:
        self._by_mark: dict[int, list[Notification]] = {}

    def add(self, mark: int, notes: list[Notification]) -> None:
        """Take notifications; of one mark, what comes first is told first."""
        if notes:
            self._by_mark.setdefault(mark, []).extend(notes)

    def in_order(self) -> list[Notification]:
        """Return all of them, those of the first event first."""
        return [note for mark in sorted(self._by_mark) for note in self._by_mark[mark]]
