"""Filling an engine with the sequences and views of an index."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.engine.engine import Engine
from tocsin.engine.saving.runs import restore_run
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.index import StatefulSubscriptions
from tocsin.matching import IdArray


def fill_engine(
    engine: Engine, stateful: StatefulSubscriptions, numbers: Iterable[int] | IdArray | None = None
) -> None:
    """Declare the tables and ticks of an index's sequences and views in a new engine, and subscribe to them.

    With `numbers`, only to those with these numbers, and to the linked filters among them; without, to all. Nobody else may use
    the engine meanwhile.
    """
    fill_store(engine._store, stateful, numbers)  # noqa: SLF001 - it is an engine's store that is filled


def fill_store(
    store: SubscriptionStore,
    stateful: StatefulSubscriptions,
    numbers: Iterable[int] | IdArray | None = None,
) -> None:
    """Fill the store of a new engine as `fill_engine` does."""
    for stream, tick in stateful.ticks.items():
        store.sequences.declare(stream, tick)
    for name, key in stateful.tables.items():
        store.views.tables.declare(name, key)
    chosen = stateful if numbers is None else stateful.take(numbers)
    for saved in (*chosen.runs, *chosen.linked_filters):
        restore_run(saved.run, store)
