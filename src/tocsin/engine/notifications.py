"""Notifications in columns: objects are created on iteration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Protocol, overload

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language.semantics import value_of
from tocsin.matching import IdArray
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Notification
from tocsin.model.event import STREAM
from tocsin.model.queries import SelectItem
from tocsin.model.subscription import Answer
from tocsin.views.answer_changes import AnswerChanges, number_answer


class NotificationPart(Protocol):
    """The notifications of one stage, by the row of the event that caused each."""

    @property
    def rows(self) -> IdArray:
        """Return, for each notification, the row of its event."""

    def notification(self, i: int) -> Notification:
        """Return the i-th notification."""


class FilterNotifications(Struct, frozen=True):
    """Notifications of filters: the event, or the selected values."""

    rows: IdArray
    scores: NDArray[np.float64] | None
    events: TimedBatch
    ids: list[str]
    selects: list[tuple[SelectItem, ...]] | None  # none selects anything
    generation: int

    def notification(self, i: int) -> Notification:
        """Return the i-th notification."""
        event, scores = self.events.event(int(self.rows[i])), self.scores
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


class SequenceNotifications(Struct, frozen=True):
    """Notifications of sequences, and of filters on the streams that they publish.

    They are made at once, because a match is decoded from the state of its automaton, which further events change.
    """

    rows: IdArray
    notifications: list[Notification]

    def notification(self, i: int) -> Notification:
        """Return the i-th notification."""
        return self.notifications[i]


class ViewNotifications(Struct, frozen=True):
    """Notifications of views: the answers before and after a row changed."""

    rows: IdArray
    changes: AnswerChanges
    events: list[Event]  # the rows that `changes` counts
    ids: list[str]
    generation: int

    def notification(self, i: int) -> Notification:
        """Return the i-th notification."""
        changes, event = self.changes, self.events[self.changes.rows.item(i)]
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


class Notifications(Sequence[Notification]):
    """The notifications of a batch of events, those of the first event first.

    For one event, they come in the order of the parts: filters, sequences with the filters on published streams, views.
    """

    def __init__(self, parts: Sequence[NotificationPart]) -> None:
        self.entries: list[tuple[NotificationPart, int]] = []
        rows: list[int] = []
        for part in parts:
            rows += part.rows.tolist()
            self.entries += zip(repeat(part), range(len(part.rows)))
        if len(parts) > 1 and len(rows) > 1:  # the rows of one part ascend
            self.entries = [self.entries[position] for position in np.argsort(rows, kind="stable").tolist()]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Notification]:
        for part, i in self.entries:
            yield part.notification(i)

    def to_list(self) -> list[Notification]:
        """Return all notifications as objects."""
        found = []
        for part, i in self.entries:
            found.append(part.notification(i))
        return found

    @overload
    def __getitem__(self, index: int) -> Notification: ...

    @overload
    def __getitem__(self, index: slice) -> list[Notification]: ...

    def __getitem__(self, index: int | slice) -> Notification | list[Notification]:
        """Return one notification, or a list of those in a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        part, i = self.entries[index]
        return part.notification(i)


def first_answer(id_: str, answer: Answer, generation: int) -> Notification:
    """Return the notification of a view's present answer."""
    return Notification(id_, (), new=answer, generation=generation, view=True)


def _select_values(items: tuple[SelectItem, ...], event: Event) -> dict[str, Any]:
    attributes = event.attributes
    if event.stream is not None:
        attributes = {**attributes, STREAM: event.stream}
    return {item.name: value_of(item.term, attributes) for item in items}
