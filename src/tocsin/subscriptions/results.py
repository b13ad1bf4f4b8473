"""The results of changes of subscriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tocsin.display.text import counted, first_warning, summary
from tocsin.model import Notification
from tocsin.model.errors import TemplateError, TocsinError
from tocsin.model.subscription import Answer


class Subscribed(Struct, frozen=True):
    """A new subscription: its first notifications, and warnings for its writer.

    A filter is notified of the kept events that it matches, a view of its present answer.
    """

    id: str
    notifications: tuple[Notification, ...] = ()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return summary(self, [f"`{self.id}`", _notified(self.notifications), first_warning(self.warnings)])

    @property
    def answer(self) -> Answer:
        """Return the present answer of a view; None for other queries."""
        return next((note.new for note in self.notifications if note.view), None)


class SubscribedMany(Struct, frozen=True):
    """New subscriptions from a template: their ids, the errors of faulty rows, and the rows that can never match.

    `ids` is a sequence whose strings are made when they are asked for. `answers` are those of views, in the order of the
    ids.
    """

    ids: Sequence[str]
    errors: tuple[TemplateError, ...] = ()
    never: tuple[int, ...] = ()
    notifications: tuple[Notification, ...] = ()
    answers: tuple[Answer, ...] = ()

    def __repr__(self) -> str:
        never = f"{len(self.never):,} that can never match" if self.never else ""
        facts = [counted(len(self.ids), "subscription"), _failed(len(self.errors)), never]
        return summary(self, [*facts, _notified(self.notifications)], first=self.ids)


class SubscribedAll(Struct, frozen=True):
    """New subscriptions that were given one by one: their ids, and the errors and warnings of those that have some.

    `errors` are by position, counted from 0 in the order given; `warnings` are by id.
    """

    ids: tuple[str, ...]
    errors: Mapping[int, TocsinError] = {}
    warnings: Mapping[str, tuple[str, ...]] = {}
    notifications: tuple[Notification, ...] = ()

    def __repr__(self) -> str:
        warned = counted(len(self.warnings), "warning") if self.warnings else ""
        facts = [counted(len(self.ids), "subscription"), _failed(len(self.errors)), warned]
        return summary(self, [*facts, _notified(self.notifications)], first=self.ids)


class Difference(Struct, frozen=True):
    """The ids that applying a set of subscriptions adds, changes, removes and leaves unchanged; `warnings` are by id."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    notifications: tuple[Notification, ...] = ()
    warnings: Mapping[str, tuple[str, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def __repr__(self) -> str:
        names = ("added", "changed", "removed", "unchanged")
        facts = [f"{len(getattr(self, name)):,} {name}" for name in names]
        return summary(self, facts, first=self.added or self.changed or self.removed)


def _failed(count: int) -> str:
    return f"{count:,} refused" if count else ""


def _notified(notifications: Sequence[Notification]) -> str:
    return counted(len(notifications), "notification") if notifications else ""
