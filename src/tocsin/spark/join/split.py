"""An index's subscriptions split in two: those that Spark SQL decides, and the remaining ones, for an index."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tocsin.index import IndexReader, SubscriptionIndex
from tocsin.index.additions import Addition
from tocsin.index.parts import PartBuilder
from tocsin.index.placement import Placement
from tocsin.index.shard import ShardDraft
from tocsin.model.conditions import Conjunction
from tocsin.spark.join.checks import Checker, JoinCheck, NeverError, UndecidedError
from tocsin.spark.join.points import SqlSubscription

_MAX_CONJUNCTIONS: Final = 16  # each carries the earlier ones


class Split(Struct, frozen=True):
    """Subscriptions by their matcher; one that no event satisfies is in neither list."""

    by_sql: list[SqlSubscription]
    remaining: list[Addition]


def split(reader: IndexReader, generation: int, checker: Checker, *, may_select: bool) -> Split:
    """Split the subscriptions of a generation; without `may_select`, SQL decides none that selects values."""
    found = Split([], [])
    storage = reader.generations.storage
    for entry in reader.generation(generation).shards:
        draft = ShardDraft.of(storage.folder(entry.folder))
        conjunctions = draft.conjunctions()
        for validity, records in draft.registry.records().items():
            left, of_left = [], []
            for record in records:
                held = conjunctions[draft.registry.subscriptions.number(record.id)]
                checks = _checks(held, checker) if may_select or record.select is None else None
                if checks is None:
                    left.append(record)
                    of_left.append(held)
                elif checks:
                    found.by_sql.append(SqlSubscription(record.id, validity, checks))
            if left:
                found.remaining.append(Addition.of_records(left, validity, of_left))
    return found


def index_remaining(
    remaining: Sequence[Addition],
    place: str | os.PathLike[str],
    matcher: str | None,
    options: Mapping[str, Any] | None,
) -> tuple[str, int]:
    """Build an index of just these subscriptions; return its address and its generation."""
    index = SubscriptionIndex(place, matcher=matcher, options=options)
    storage = index.generations.storage
    placement = Placement(index.shards)
    builder = PartBuilder(0, placement, matcher, options)
    for addition in remaining:
        builder.contents.add(addition)
    return storage.uri, index.adopt([builder.save(storage)], placement)


def _checks(held: Sequence[Conjunction], checker: Checker) -> list[tuple[JoinCheck, ...]] | None:
    """Return the checks of the satisfiable conjunctions, or None if SQL cannot decide them."""
    found = []
    for conjunction in held:
        try:
            found.append(checker.checks(conjunction))
        except NeverError:
            continue
        except UndecidedError:
            return None
    return found if len(found) <= _MAX_CONJUNCTIONS else None
