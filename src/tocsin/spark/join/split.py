"""Subscriptions of an index, apart: those that Spark SQL decides, and those that are left to be matched by an index."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tocsin.index import IndexReader, SubscriptionIndex
from tocsin.index.additions import Addition, batch_of
from tocsin.index.parts import PartBuilder
from tocsin.index.placement import Placement
from tocsin.index.shard import ShardDraft
from tocsin.model.conditions import Conjunction
from tocsin.spark.join.checks import Checker, JoinCheck, NeverError, UndecidedError
from tocsin.spark.join.points import Decided

_CONJUNCTIONS: Final = 16  # each carries those before it


class Split(Struct, frozen=True):
    """Subscriptions by who matches them; one that no event satisfies is in neither."""

    decided: list[Decided]
    left: list[Addition]


def split(reader: IndexReader, generation: int, checker: Checker, *, may_select: bool) -> Split:
    """Return the subscriptions of a generation; without `may_select`, those that select something are left."""
    found = Split([], [])
    storage = reader.generations.storage
    for entry in reader.generation(generation).shards:
        draft = ShardDraft.of(storage.folder(entry.folder))
        conjunctions = draft.conjunctions()
        for validity, records in draft.registry.records().items():
            left = []
            for record in records:
                held = conjunctions[draft.registry.subscriptions.number(record.id)]
                checks = _checks(held, checker) if may_select or record.select is None else None
                if checks is None:
                    left.append(record)
                elif checks:
                    found.decided.append(Decided(record.id, validity, checks))
            if left:
                batch = batch_of(
                    [conjunctions[draft.registry.subscriptions.number(record.id)] for record in left]
                )
                found.left.append(
                    Addition(
                        [record.id for record in left],
                        batch,
                        validity,
                        [record.digest for record in left],
                        [record.select for record in left],
                    )
                )
    return found


def rest_index(
    left: Sequence[Addition],
    place: str | os.PathLike[str],
    matcher: str | None,
    options: Mapping[str, Any] | None,
) -> tuple[str, int]:
    """Make an index hold just these subscriptions; return where it is, and its generation."""
    index = SubscriptionIndex(place, matcher=matcher, options=options)
    storage = index.generations.storage
    placement = Placement(index.shards)
    builder = PartBuilder(0, placement, matcher, options)
    for addition in left:
        builder.contents.add(addition)
    return storage.uri, index.adopt([builder.save(storage)], placement)


def _checks(held: Sequence[Conjunction], checker: Checker) -> list[tuple[JoinCheck, ...]] | None:
    """Return the checks of the conjunctions that some event may satisfy, or None if they are left to an index."""
    found = []
    for conjunction in held:
        try:
            found.append(checker.checks(conjunction))
        except NeverError:
            continue
        except UndecidedError:
            return None
    return found if len(found) <= _CONJUNCTIONS else None
