"""The subscriptions of an index in memory, spread over shards, and shards that are built apart and published together."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.index.additions import WaitingFilters, filter_of, merge_additions, sample_conjunctions
from tocsin.index.generations import ShardEntry
from tocsin.index.placement import Placement, Route, Routes
from tocsin.index.shard import ShardDraft
from tocsin.index.storage import LocalStorage, Storage
from tocsin.matching import ConjunctionBatch, ConjunctionGroup
from tocsin.model import Filter
from tocsin.model.event import STREAM
from tocsin.model.options import Validity


class Contents:
    """Subscriptions by id, each on one shard.

    Added subscriptions wait until `settle` assigns their shards, so that the rule of placement is chosen for all of
    the first ones together. With a `placement`, that is the rule.
    """

    def __init__(
        self,
        shards: int,
        matcher: str | None = None,
        options: Mapping[str, Any] | None = None,
        placement: Placement | None = None,
    ) -> None:
        self.shards = shards
        self.placement = placement
        self.routes = Routes()
        self.attributes: set[str] = set()  # mentioned by any subscription, present or past
        self.changed: set[int] = set()  # shards that differ from their saved state
        self.is_torn = False  # whether a change was interrupted
        self.where: dict[str, int] = {}
        self._matcher = matcher
        self._options = dict(options or {})
        self.drafts = self._new_drafts()
        self._waiting: list[WaitingFilters] = []
        self._waiting_ids: dict[str, None] = {}

    def take(self, drafts: Sequence[ShardDraft], placement: Placement) -> None:
        """Replace the contents by saved shards."""
        self.drafts = list(drafts)
        for shard, draft in enumerate(self.drafts):
            if self._matcher is None:
                draft.let_grow()
            self.where.update(dict.fromkeys(draft.registry.subscriptions, shard))
        self.placement = (
            placement if self.where else None
        )  # a placement that was chosen for no subscription is no use

    def __len__(self) -> int:
        return len(self.where) + len(self._waiting_ids)

    def __contains__(self, id_: object) -> bool:
        return id_ in self.where or id_ in self._waiting_ids

    def __iter__(self) -> Iterator[str]:
        yield from self.where
        yield from self._waiting_ids

    @property
    def has_changes(self) -> bool:
        """Return whether anything differs from the saved state."""
        return bool(self._waiting or self.changed)

    def add(self, addition: WaitingFilters) -> None:
        """Add subscriptions; their ids must be new."""
        self.attributes.update(addition.attributes())
        self._wait(addition)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove subscriptions; each must be present."""
        if any(name in self._waiting_ids for name in ids):
            self.settle()
        gone: dict[int, list[int]] = {}
        with self._whole():
            for name in ids:
                shard = self.where.pop(name)
                gone.setdefault(shard, []).append(self.drafts[shard].registry.subscriptions.remove(name))
            for shard, numbers in gone.items():
                self.drafts[shard].matcher.remove(np.array(numbers, dtype=np.int64))
                self.changed.add(shard)

    def is_unchanged(self, id_: str, validity: Validity, digest: int) -> bool:
        """Return whether a subscription is stored with exactly this validity and a query with this digest."""
        shard = self.where.get(id_)
        return shard is not None and self.drafts[shard].registry.is_unchanged(id_, validity, digest)

    def expired(self, now: int) -> list[str]:
        """Return the ids of the subscriptions that have expired by `now`; each is returned once."""
        return [name for draft in self.drafts for name in draft.registry.subscriptions.expired(now)]

    def filters_on(self, streams: Set[str]) -> Iterator[tuple[str, Validity, Filter]]:
        """Yield the filters that name one of these streams, with their ids; equivalent to how they were given."""
        self.settle()
        if STREAM not in self.attributes:
            return
        for draft in self.drafts:
            number = draft.registry.subscriptions.number
            conjunctions = draft.conjunctions()
            for validity, records in draft.registry.records().items():
                for record in records:
                    found = filter_of(conjunctions[number(record.id)], record.select)
                    if found is not None and found.stream in streams:
                        yield record.id, validity, found

    def settle(self) -> None:
        """Assign a shard to each added subscription, and add it there."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        self._waiting_ids = {}
        with self._whole():
            placement = self.placement
            if placement is None:
                seen = sample_conjunctions([one.batch for one in waiting])
                placement = self.placement = Placement.of(seen, self.shards)
            for one in merge_additions(waiting):
                shards = self.routes.place(one.batch, one.ids, placement)
                for shard in np.unique(shards).tolist():
                    self._fill(shard, one, np.flatnonzero(shards == shard))

    def rebalance(self) -> None:
        """Choose a placement for the present subscriptions, and redistribute them over the shards."""
        self.settle()
        before = self.drafts
        held = [draft.conjunctions() for draft in before]
        with self._whole():
            self.placement = None
            self.routes = Routes()
            self.drafts = self._new_drafts()
            self.where.clear()
            self.changed.update(range(self.shards))
            for draft, conjunctions in zip(before, held, strict=True):
                number = draft.registry.subscriptions.number
                for validity, records in draft.registry.records().items():
                    of_each = [conjunctions[number(record.id)] for record in records]
                    self._wait(WaitingFilters.of_records(records, validity, of_each))
            self.settle()

    def _new_drafts(self) -> list[ShardDraft]:
        return [ShardDraft.new(self._matcher, self._options) for _ in range(self.shards)]

    def _wait(self, addition: WaitingFilters) -> None:
        self._waiting.append(addition)
        self._waiting_ids.update(dict.fromkeys(addition.ids))

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Mark the contents as torn if the block is interrupted (Ctrl-C, no memory), so that it is never published."""
        was_torn, self.is_torn = self.is_torn, True
        yield
        self.is_torn = was_torn

    def _fill(self, shard: int, one: WaitingFilters, positions: NDArray[np.int64]) -> None:
        """Add the subscriptions of an addition at some positions to the draft of a shard."""
        draft = self.drafts[shard]
        ids = [one.ids[position] for position in positions.tolist()]
        numbers = draft.registry.add(
            ids,
            one.validity,
            [one.digests[position] for position in positions.tolist()],
            [one.selects[position] for position in positions.tolist()],
        )
        to_number = np.full(len(one.ids), -1, dtype=np.int64)
        to_number[positions] = numbers
        groups = []
        for group in one.batch.groups:
            rows = to_number[group.ids]
            if len(positions) == len(one.ids):
                groups.append(ConjunctionGroup(group.shape, rows, group.columns))
            elif (rows >= 0).any():
                kept = np.flatnonzero(rows >= 0)
                columns = {name: column[kept] for name, column in group.columns.items()}
                groups.append(ConjunctionGroup(group.shape, rows[kept], columns))
        batch = ConjunctionBatch(tuple(groups))
        draft.matcher.add(batch)
        self.where.update(dict.fromkeys(ids, shard))
        self.changed.add(shard)


class IndexPart(Struct, frozen=True):
    """A shard that was built and saved: its routes, and the attributes that its subscriptions mention."""

    shard: int
    entry: ShardEntry
    routes: tuple[Route, ...]
    attributes: tuple[str, ...]


class PartBuilder:
    """Builds one shard of an index; whatever is added belongs there by the placement."""

    def __init__(
        self, shard: int, placement: Placement, matcher: str | None, options: Mapping[str, Any] | None
    ) -> None:
        self.shard = shard
        self.contents = Contents(placement.shards, matcher, options, placement)

    def save(self, storage: Storage) -> IndexPart:
        """Write the shard into the index's folder; it is used only after it is published."""
        self.contents.settle()
        return IndexPart(
            self.shard,
            save_shard(storage, self.contents.drafts[self.shard]),
            tuple(self.contents.routes.entries),
            tuple(sorted(self.contents.attributes)),
        )


def save_shard(storage: Storage, draft: ShardDraft) -> ShardEntry:
    """Write a shard into the index's folder."""
    return ShardEntry(written(storage, "shards", draft.save), len(draft.registry), draft.bytes)


def written(storage: Storage, kind: str, write: Callable[[Path], object]) -> str:
    """Write a folder, move it into the index, and return its path there."""
    token = token_hex(8)
    home = storage.home if isinstance(storage, LocalStorage) else None  # here already: no copy is needed
    if home is not None:
        home.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=home))
    try:
        write(draft / token)
        storage.take_in(draft / token, f"{kind}/{token}")
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return f"{kind}/{token}"
