"""What the subscription of a view is told."""

from __future__ import annotations

from msgspec import Struct

from tocsin.model import Event, Notification
from tocsin.model.subscription import Answer, AnswerItem
from tocsin.views.answer_changes import differences


class ViewChange(Struct, frozen=True):
    """One answer that a row changed."""

    change: int
    number: int
    old: Answer
    new: Answer
    removed: tuple[AnswerItem, ...] = ()
    added: tuple[AnswerItem, ...] = ()


class Altered(Struct, frozen=True):
    """One answer that an event altered: the event, its mark, when it came, and what is different."""

    mark: int
    event: Event
    now: int
    change: ViewChange


def view_notification(id_: str, altered: Altered, old: Answer, generation: int) -> Notification:
    """Return what the subscription of a view is told of a change."""
    event, change = altered.event, altered.change
    same = old is change.old
    removed, added = (change.removed, change.added) if same else differences(old, change.new)
    return Notification(
        subscription=id_,
        event_ids=(event.id,),
        events=(event,),
        old=old,
        new=change.new,
        start=event.start,
        end=event.end,
        generation=generation,
        view=True,
        removed=removed,
        added=added,
    )


def first_answer(id_: str, answer: Answer, generation: int) -> Notification:
    """Return what the subscription of a view is told at once: its present answer."""
    return Notification(id_, (), new=answer, generation=generation, view=True)
