"""Many subscriptions that are stored together, each of which may be refused by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from tocsin.engine.delivery import Callback
from tocsin.engine.pipeline import EventPipeline
from tocsin.engine.subscription_store import SubscriptionStore, already_subscribed
from tocsin.model import Notification
from tocsin.model.errors import TocsinError
from tocsin.structures.answering import answering
from tocsin.subscriptions.results import SubscribedAll
from tocsin.subscriptions.sources import CompiledSubscription, GivenSubscription

TOGETHER: Final = 10_000  # subscriptions that are stored at a time

NewSubscriptions: TypeAlias = dict[str, CompiledSubscription[Any]]


def exchange(
    store: SubscriptionStore,
    pipeline: EventPipeline,
    replaced: Sequence[str],
    new: Mapping[str, CompiledSubscription[Any]],
    callback: Callback | None = None,
) -> tuple[Notification, ...]:
    """Replace subscriptions by new ones, and return the first notifications of these; if one is refused, nothing changes.

    The callback is that of the new ones.
    """
    others = [id_ for id_, one in new.items() if not one.is_filter]
    rows = sum(store.rows_read_by(new[id_].query) for id_ in others)
    with answering(len(replaced) + len(new) + rows):
        added = store.exchange(replaced, new)
        notifications = pipeline.match_history(added) + store.first_answers(others)
    store.deliver(list(new), callback, notifications)
    return notifications


class BulkSubscriptions:
    """Stores subscriptions in parts, and gathers their errors and warnings."""

    def __init__(
        self,
        store: SubscriptionStore,
        pipeline: EventPipeline,
        *,
        replace: bool,
        callback: Callback | None = None,
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._replace = replace
        self._callback = callback
        self._ids: dict[str, None] = {}
        self._errors: dict[int, TocsinError] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}
        self._notifications: list[Notification] = []
        self._positions: dict[str, int] = {}  # in the order given, of the present part
        self._given = 0

    def compile(self, part: Sequence[GivenSubscription]) -> NewSubscriptions:
        """Return the subscriptions of the next part that can be compiled, ready to be added."""
        new: NewSubscriptions = {}
        self._positions = {}
        for position, one in enumerate(part, self._given):
            try:
                options = one.options(self._store.sequences.ticks.zone)
                if one.id in new and not self._replace:
                    raise already_subscribed(one.id)
                new[one.id], warnings = self._store.compile_with_warnings(one.id, one.query, options)
            except TocsinError as error:
                self._errors[position] = error
                continue
            self._positions[one.id] = position
            if warnings := (*warnings, *self._store.expiry_warning(options)):
                self._warnings[one.id] = warnings
        self._given += len(part)
        return new

    def add(self, new: NewSubscriptions) -> None:
        """Store compiled subscriptions: at once or, if a runtime refuses one of them, one by one."""
        taken = dict.fromkeys(self._store.registry.present(list(new)))
        if not self._replace:
            for id_ in taken:
                self._refuse(id_, already_subscribed(id_))
                del new[id_]
            taken = {}
        try:
            self._exchange(list(taken), new)
        except TocsinError:
            for id_, one in new.items():
                try:
                    self._exchange([id_] if id_ in taken else [], {id_: one})
                except TocsinError as error:
                    self._refuse(id_, error)

    def result(self) -> SubscribedAll:
        """Return what was stored and what was not."""
        errors = dict(sorted(self._errors.items()))
        return SubscribedAll(tuple(self._ids), errors, self._warnings, tuple(self._notifications))

    def _exchange(self, replaced: Sequence[str], new: NewSubscriptions) -> None:
        self._notifications += exchange(self._store, self._pipeline, replaced, new, self._callback)
        self._ids.update(dict.fromkeys(new))

    def _refuse(self, id_: str, error: TocsinError) -> None:
        self._errors[self._positions[id_]] = error
        self._warnings.pop(id_, None)
