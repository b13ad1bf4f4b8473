"""The results of changes of subscriptions."""

from __future__ import annotations

from msgspec import Struct

from tocsin.model import Notification
from tocsin.model.errors import TemplateError
from tocsin.model.subscription import Answer


class Subscribed(Struct, frozen=True):
    """A new subscription: its first notifications, and warnings for its writer.

    A filter is notified of the kept events that it matches, a view of its present answer.
    """

    id: str
    notifications: tuple[Notification, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def answer(self) -> Answer:
        """Return the present answer of a view; None for other queries."""
        return next((note.new for note in self.notifications if note.view), None)


class SubscribedMany(Struct, frozen=True):
    """New subscriptions from a template: their ids, the errors of faulty rows, and the rows that can never match.

    `answers` are those of views, in the order of the ids.
    """

    ids: tuple[str, ...]
    errors: tuple[TemplateError, ...] = ()
    never: tuple[int, ...] = ()
    notifications: tuple[Notification, ...] = ()
    answers: tuple[Answer, ...] = ()


class Difference(Struct, frozen=True):
    """The ids that applying a set of subscriptions adds, changes, removes and leaves unchanged."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    notifications: tuple[Notification, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)
