"""The state of an engine as bytes, and what becomes of it in an engine with these subscriptions or others."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tocsin.engine.saving.identities import Identities, write_identities
from tocsin.engine.saving.state import EngineParts, SavedState
from tocsin.matching import IdArray
from tocsin.model import Notification
from tocsin.model.errors import SavedError
from tocsin.structures.archive import Parts

_KINDS = ("sequences", "views", "filters")


class Restored(Struct, frozen=True):
    """What `Engine.restore` found.

    `subscriptions` are the sequences and views that go on with the state; `new` are those that it does not know, or that
    ask something else under an id that it knows; `gone` are those that the engine does not have. `dropped` counts partial matches
    that no subscription can continue. `tables` are those of the state that the engine has not declared, whose rows are left
    out. `notifications` are the first ones of new views, and of new filters that kept events satisfy.
    """

    subscriptions: int
    new: int
    gone: int
    dropped: int
    tables: tuple[str, ...]
    notifications: tuple[Notification, ...]


def take_snapshot(engine: EngineParts) -> Parts:
    """Return the state of an engine, and the ids that it belongs to; called under the engine's lock."""
    # Filters have no state, but new ones are to meet kept events.
    filters = _filters(engine) if len(engine.pipeline.history) else np.empty(0, dtype=np.int64)
    numbers = dict(zip(_KINDS, (*engine.stateful(), filters), strict=True))
    ids = {kind: write_identities(engine.store, own) for kind, own in numbers.items()}
    state = engine.snapshot(numbers["sequences"], numbers["views"])
    return Parts.join({}, {"state": state, "ids": Parts.join({}, ids)})


def _filters(engine: EngineParts) -> IdArray:
    """Return the numbers of all filters, in the order they came."""
    numbers = engine.store.registry.numbers()
    return numbers[~np.isin(numbers, np.concatenate(engine.stateful()))]


def restore_snapshot(engine: EngineParts, parts: Parts) -> Restored:
    """Replace the state of an engine, or raise `SavedError` and change nothing; called under the engine's lock."""
    saved = SavedState.of(parts.part("state"))
    identities = {kind: Identities.read(parts.part("ids").part(kind)) for kind in _KINDS}
    _check_ticks(engine, saved)
    own = dict(zip(_KINDS, (*engine.stateful(), _filters(engine)), strict=True))
    kinds = _KINDS if saved.events else _KINDS[:2]
    found = {kind: identities[kind].find(engine.store, own[kind]) for kind in kinds}
    views = engine.store.views.prepare(saved.parts.part("views"), found["views"])
    dropped = saved.restore_events(engine, found["sequences"])
    engine.store.views.adopt(views)  # nothing fails from here on
    saved.restore_clock(engine.clock)
    saved.restore_counts(engine)
    new = {kind: numbers[~np.isin(numbers, found[kind])] for kind, numbers in own.items() if kind in kinds}
    notifications = engine.store.first_answers(engine.store.registry.ids_of(new["views"]))
    if saved.events:
        notifications += engine.pipeline.match_kept(new["filters"])
    if notifications:
        engine.store.deliver((), None, notifications)
    known = sum(int((found[kind] >= 0).sum()) for kind in _KINDS[:2])
    return Restored(
        known,
        len(new["sequences"]) + len(new["views"]),
        len(found["sequences"]) + len(found["views"]) - known,
        dropped,
        views.left_out,
        notifications,
    )


def _check_ticks(engine: EngineParts, saved: SavedState) -> None:
    """Raise `SavedError` if a stream counts other ticks here."""
    sequences = engine.store.sequences
    for stream, tick in saved.ticks.items():
        here = sequences.ticks.length(stream)
        if here != tick and (sequences.reads(stream) or stream in sequences.declared):
            raise SavedError(
                f"a tick of the stream `{stream}` is {tick:,} microseconds there, and {here:,} here; declare it with the "
                "same tick"
            )
