"""Which events travel to which shards, and what for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntFlag
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching.batches import EventBatch
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.encoding.columns import plain_values
from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model.event import DELETIONS, STREAM
from tocsin.model.options import ALWAYS
from tocsin.sharding.hashing import HashedColumn, combined, event_hashes, shards_of, text_hashes
from tocsin.sharding.plan import KeyGroup, ShardPlan
from tocsin.sharding.static_routes import StaticRoutes
from tocsin.structures.array_types import Bools, Int32s, Int64s
from tocsin.views.table import StoredTable

CLOCK: Final = 0
"""The key of the latest end of all events, beside those of the events that sequences read, by the length of a tick."""

LatestEnds: TypeAlias = dict[int, int]
"""The latest ends of events: of the streams that sequences read, by the microseconds of a tick; of all streams, under `CLOCK`; and
of each stream that no sequence reads, by `unread_key`. Those of several parts are merged by `merge_latest`."""


class Role(IntFlag):
    """What an event travels for, as bits; those of groups follow."""

    HOME = 1  # the sequences without a key
    TABLE = 2  # it is a row of a table that views read
    KEPT = 4  # it is kept for filters that are added later
    REPORTS_LATE = 8  # of all shards that the event goes to, this one reports it if it is late


FIRST_GROUP: Final = 4
"""The bit of the first group's role."""


class Routed(NamedTuple):
    """Which rows travel to which shards, by shard and then by row, and the latest ends of all rows.

    `refused` are rows of a table's stream that have no key, each with the reason; they reach no sequence and no view.
    """

    rows: Int64s
    shards: Int32s
    roles: Int64s
    latest: LatestEnds
    refused: Mapping[int, str]

    def by_shard(self) -> Iterator[tuple[int, Int64s, Int64s]]:
        """Yield each shard that some row goes to, with the rows and their roles."""
        shards, begins = np.unique(self.shards, return_index=True)
        bounds = [*begins.tolist(), len(self.shards)]
        for shard, (begin, end) in zip(shards.tolist(), pairwise(bounds), strict=True):
            yield shard, self.rows[begin:end], self.roles[begin:end]


def unread_key(stream: str) -> int:
    """Return the key of a stream that no sequence reads: one that is added later sees only what ends after its latest end."""
    return -1 - crc32(stream.encode())


def rows_without_key(events: EventBatch, count: int, keys: Mapping[str, tuple[str, ...]]) -> dict[int, str]:
    """Return the reason for each of so many rows that is of a table, and lacks an attribute of its key; `keys` are those of all tables."""
    return _without_keys(events, keys, _Streams.of(events, count), np.ones(count, dtype=np.bool_), {})


def merge_latest(parts: Iterable[Mapping[int, int]]) -> LatestEnds:
    """Return the latest ends of events that were routed in several parts."""
    found: LatestEnds = {}
    for part in parts:
        for key, end in part.items():
            found[key] = max(end, found.get(key, ALWAYS))
    return found


class EventRows(Struct, frozen=True):
    """Events to be routed: the batch, when each ended, and what is special about some rows.

    `skipped` are rows that are no events. `kept_until` is until when rows are kept for later filters, and `is_kept` which
    rows are; `ids` are the ids of those.
    """

    events: EventBatch
    ends: Int64s
    skipped: Collection[int] = ()
    kept: Int64s = np.empty(0, dtype=np.int64)
    kept_ids: Sequence[str] = ()


class ShardRouter:
    """Routes events by a plan. It holds nothing that events change."""

    def __init__(self, plan: ShardPlan) -> None:
        self._plan = plan
        self._static = StaticRoutes(plan.routes, plan.shards)

    def route(self, events: TimedBatch) -> Routed:
        """Return which events travel to which shards."""
        kept, ids = _kept(events)
        return self.route_rows(EventRows(events.batch, events.ends, list(events.faults), kept, ids))

    def route_rows(self, rows: EventRows) -> Routed:
        """Return which rows travel to which shards."""
        plan, count = self._plan, len(rows.ends)
        roles = np.zeros((count, plan.shards), dtype=np.int64)
        present = np.ones(count, dtype=np.bool_)
        present[list(rows.skipped)] = False
        streams = _Streams.of(rows.events, count)
        hashes: dict[str, HashedColumn] = {}
        refused = _without_keys(rows.events, plan.keys, streams, present, hashes)
        present[list(refused)] = False
        for name, there in plan.tables.items():
            own = streams.mask(name) & present
            if own.any():
                roles[np.ix_(own, there)] |= Role.TABLE
        ordinary = present & ~_deletions(rows.events, count)
        latest = self._latest(rows.ends, streams, ordinary)
        masks = streams.masks(ordinary)
        self._static.mark(rows.events, masks, hashes, roles, Role.HOME)
        for number, group in enumerate(plan.groups):
            for keyed, at in self._keyed_rows(group, rows.events, masks, hashes):
                roles[keyed, at] |= np.int64(1 << (FIRST_GROUP + number))
        reads = (roles & ~np.int64(Role.TABLE)) != 0
        reporters = np.flatnonzero(reads.any(axis=1))
        roles[reporters, reads[reporters].argmax(axis=1)] |= Role.REPORTS_LATE
        if len(rows.kept):
            is_event = ordinary[rows.kept]
            homes = shards_of(text_hashes(rows.kept_ids), plan.shards)
            roles[rows.kept[is_event], homes[is_event]] |= Role.KEPT
        shards, positions = np.nonzero(roles.T)
        return Routed(positions, shards.astype(np.int32), roles[positions, shards], latest, refused)

    def _latest(self, ends: Int64s, streams: _Streams, ordinary: Bools) -> LatestEnds:
        plan, found = self._plan, LatestEnds()
        if ordinary.any():
            found[CLOCK] = int(ends[ordinary].max())
        for name in streams.names:
            own = streams.mask(name) & ordinary
            if name is not None and own.any():
                key = plan.ticks.get(name, 1) if name in plan.reads else unread_key(name)
                found[key] = max(int(ends[own].max()), found.get(key, ALWAYS))
        return found

    def _keyed_rows(
        self, group: KeyGroup, events: EventBatch, masks: Mapping[str, Bools], hashes: dict[str, HashedColumn]
    ) -> Iterator[tuple[Int64s, Int32s]]:
        """Yield the rows of each stream that have a key of a group, and the shard of its hash."""
        for stream, paths in group.scheme:
            of_stream = masks.get(stream)
            if of_stream is None:
                continue
            for path in paths:
                if path not in hashes:
                    hashes[path] = event_hashes(events, path)
            values, there = combined([hashes[path] for path in paths])
            own = np.flatnonzero(of_stream & there)
            if group.values is not None and len(own):
                at = np.searchsorted(group.values, values[own])
                own = own[group.values[np.minimum(at, len(group.values) - 1)] == values[own]]
            yield own, shards_of(values[own], self._plan.shards)


class _Streams:
    """The stream of each row of a batch."""

    def __init__(self, names: Sequence[str | None], codes: NDArray[np.int64] | None) -> None:
        self.names = names
        self._codes = codes
        self._masks: dict[str | None, Bools] = {}
        self._count = 0

    @classmethod
    def of(cls, events: EventBatch, count: int) -> _Streams:
        if isinstance(events, ArrowEvents):
            column = events.streams
            if column is None:
                found = cls((events.stream,), None)
            else:
                found = cls(column.names, None)
                found._masks = {name: column.has(name) for name in column.names}
        else:
            names: dict[str | None, int] = {}
            each = (events.attributes(row).get(STREAM) for row in range(count))
            codes = [names.setdefault(name if isinstance(name, str) else None, len(names)) for name in each]
            found = cls(tuple(names), np.array(codes, dtype=np.int64))
        found._count = count
        return found

    def mask(self, name: str | None) -> Bools:
        """Return which rows are of a stream."""
        known = self._masks.get(name)
        if known is None:
            if name not in self.names:
                known = np.zeros(self._count, dtype=np.bool_)
            elif self._codes is None:
                known = np.ones(self._count, dtype=np.bool_)
            else:
                known = self._codes == self.names.index(name)
            self._masks[name] = known
        return known

    def masks(self, among: Bools) -> dict[str, Bools]:
        """Return which of some rows are of each stream that there is."""
        return {name: self.mask(name) & among for name in self.names if name is not None}


def _kept(events: TimedBatch) -> tuple[Int64s, list[str]]:
    """Return the rows that are kept for later filters, and their ids."""
    if isinstance(events, TimedRows):
        if events.validity is None:
            return np.empty(0, dtype=np.int64), []
        rows = np.intersect1d(np.flatnonzero(events.validity.is_kept), events.rows)
    else:
        found = [row for row, event in enumerate(events.events) if event.valid_until is not None]
        rows = np.array(found, dtype=np.int64)
    return rows, [events.event(row).id for row in rows.tolist()]


def _without_keys(
    events: EventBatch,
    keys: Mapping[str, tuple[str, ...]],
    streams: _Streams,
    present: Bools,
    hashes: dict[str, HashedColumn],
) -> dict[int, str]:
    """Return the reason for each row that lacks an attribute of its table's key, or that has an opaque value there."""
    refused: dict[int, str] = {}
    for name, key in keys.items():
        own = streams.mask(name) & present
        if not own.any():
            continue
        for path in reversed(key):  # the first one that is missing is reported
            if path not in hashes:
                hashes[path] = event_hashes(events, path)
            missing = str(StoredTable(name, key).missing_key(path))
            refused |= dict.fromkeys(np.flatnonzero(own & ~hashes[path].present).tolist(), missing)
    return refused


def _deletions(events: EventBatch, count: int) -> Bools:
    """Return which rows delete rows of tables."""
    found = np.zeros(count, dtype=np.bool_)
    for name in DELETIONS:
        if isinstance(events, ArrowEvents):
            for leaf in events.leaves_at(name):
                if pa.types.is_boolean(leaf.type):
                    found |= plain_values(leaf)[0]
        else:
            found |= np.array([events.attributes(row).get(name) is True for row in range(count)], np.bool_)
    return found
