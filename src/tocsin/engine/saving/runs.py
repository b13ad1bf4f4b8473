"""Runs of subscriptions, restored into the store of an engine."""

from __future__ import annotations

from typing import Any

from tocsin.engine.bulk_subscriptions import TOGETHER
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.model.errors import SubscriptionError, TocsinError
from tocsin.subscriptions.runs import Run
from tocsin.subscriptions.sources import CompiledSubscription


def restore_run(run: Run, store: SubscriptionStore) -> None:
    """Add the subscriptions of a run to the store of an engine that nobody uses yet."""
    if run.template is None:
        _restore_texts(run, store)
        return
    stored = run.template
    store.restore_template(stored.template, stored.rows.columns, stored.rows.rows, run.ids, run.options[0])


def _restore_texts(run: Run, store: SubscriptionStore) -> None:
    for begin in range(0, len(run), TOGETHER):
        end = min(begin + TOGETHER, len(run))
        part = run.ids.listed(begin, end), run.texts[begin:end], run.options[begin:end]
        new: dict[str, CompiledSubscription[Any]] = {}
        for id_, text, options in zip(*part, strict=True):
            try:
                new[id_] = store.compile(id_, text, options)
            except TocsinError as error:
                raise (
                    error if isinstance(error, SubscriptionError) else SubscriptionError(str(error), id_)
                ) from None
        store.exchange([], new)
