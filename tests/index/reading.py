"""The matches that a process finds with an index, by the router and the shards, as Spark's workers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tocsin.index import IndexReader
from tocsin.matching import EventBatch

__all__ = ["found_by", "visits"]


def found_by(
    reader: IndexReader, generation: int, events: Sequence[Mapping[str, Any]], end: int = 0
) -> list[set[str]]:
    """Return the ids of the subscriptions that each event satisfies; one that is found twice fails."""
    found: list[list[str]] = [[] for _ in events]
    for shard, rows in visits(reader, generation, events).items():
        opened = reader.shard(generation, shard)
        ends = np.full(len(rows), end, dtype=np.int64)
        matches = opened.match(EventBatch.of_dicts([events[row] for row in rows]), ends)
        for row, id_ in zip(matches.rows.tolist(), opened.ids(matches.numbers).to_pylist(), strict=True):
            found[rows[row]].append(id_)
    assert all(len(ids) == len(set(ids)) for ids in found)
    return [set(ids) for ids in found]


def visits(reader: IndexReader, generation: int, events: Sequence[Mapping[str, Any]]) -> dict[int, list[int]]:
    """Return the places of the events that each shard has to see."""
    shards = len(reader.generation(generation).shards)
    if shards == 1:
        return {0: list(range(len(events)))}
    routed = reader.router(generation).route(EventBatch.of_dicts(events))
    return {shard: routed.rows[routed.numbers == shard].tolist() for shard in range(shards)}
