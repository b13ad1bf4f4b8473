"""Reading an index to match with it: any generation, opened on demand."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from tocsin.index.generations import Generation, Generations
from tocsin.index.router import Router
from tocsin.index.shard import Shard
from tocsin.index.shard_registry import SavedRegistry
from tocsin.index.stateful import StatefulSubscriptions, read_stateful
from tocsin.index.storage import storage_of
from tocsin.matching import IdArray

Key = TypeVar("Key", int, str)
Opened = TypeVar("Opened")

_KEPT: Final = 4  # shards and routers that stay open, each; a stream needs one, and two around a change


class IndexReader:
    """Opens shards and routers of an index on demand, and keeps the latest ones open."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.generations = Generations(storage_of(folder))
        self._read: OrderedDict[int, Generation] = OrderedDict()
        self._shards: OrderedDict[str, Shard] = OrderedDict()
        self._routers: OrderedDict[str, Router] = OrderedDict()
        self._stateful: OrderedDict[str, StatefulSubscriptions] = OrderedDict()
        self._token: str | None = None

    def renew(self) -> None:
        """Close everything if the folder now has another index; raise if it has none."""
        home = self.generations.home()
        if home is None:
            raise self.generations.fault("there is no index here; make one with `SubscriptionIndex`")
        if home.token != self._token:
            self._token = home.token
            self._read.clear()  # shards and routers have names of their own

    def current(self) -> int:
        """Return the number of the newest generation, or raise `SavedIndexError` if there is none."""
        number = self.generations.current()
        if not number:
            reason = "nothing was published yet" if self.generations.home() else "there is no index here"
            raise self.generations.fault(f"{reason}; make one with `SubscriptionIndex` and its `publish`")
        return number

    def generation(self, number: int) -> Generation:
        """Return a generation."""
        return _kept(self._read, number, lambda: self.generations.read(number))

    def shard(self, generation: int, shard: int) -> Shard:
        """Return a shard of a generation; generations share unchanged shards."""
        folder = self.generation(generation).shards[shard].folder
        return _kept(self._shards, folder, lambda: Shard(self.generations.storage.folder(folder)))

    def stateful(self, generation: int) -> StatefulSubscriptions | None:
        """Return the sequences and views of a generation; None if it has none.

        Generations whose sequences and views are the same share one object, which is read once.
        """
        entry = self.generation(generation).stateful
        if entry is None or not entry.subscriptions:
            return None
        folder, digest = entry.folder, entry.digest
        return _kept(
            self._stateful, digest, lambda: read_stateful(self.generations.storage.folder(folder), digest)
        )

    def added_filters(self, older: int, newer: int) -> dict[int, IdArray]:
        """Return the filters of a generation that an older one lacks, or has otherwise: by shard, their numbers there.

        Only shards that differ are read, so that this takes some 0.2 s for a million filters.
        """
        before = {shard.folder for shard in self.generation(older).shards}
        after = {shard.folder for shard in self.generation(newer).shards}
        changed = [
            self.shard(older, number).registry
            for number, shard in enumerate(self.generation(older).shards)
            if shard.folder not in after
        ]
        found = {}
        for number, shard in enumerate(self.generation(newer).shards):
            if shard.folder not in before:
                added = _added(self.shard(newer, number).registry, changed)
                if len(added):
                    found[number] = added
        return found

    def router(self, generation: int) -> Router:
        """Return a generation's router; an index of one shard has none."""
        folder = self.generation(generation).router
        if folder is None:
            raise self.generations.fault("it has one shard, and so no router")
        return _kept(self._routers, folder, lambda: Router(self.generations.storage.folder(folder)))


def _added(registry: SavedRegistry, earlier: Sequence[SavedRegistry]) -> IdArray:
    """Return the numbers of the subscriptions that no earlier registry has with the same query and validity."""
    import pyarrow.compute as pc  # noqa: PLC0415 - it takes a while to load, and few need it

    is_new = np.array(registry.ids.is_valid())
    for one in earlier:
        places = pc.index_in(registry.ids, value_set=one.ids)
        here = np.flatnonzero(np.asarray(places.is_valid()) & is_new)
        there = places.take(pa.array(here)).to_numpy(zero_copy_only=False).astype(np.int64)
        same = np.ones(len(here), dtype=np.bool_)
        for column in ("digest", "valid_from", "valid_until"):
            same &= getattr(registry, column)[here] == getattr(one, column)[there]
        is_new[here[same]] = False
    return np.flatnonzero(is_new)


def _kept(opened: OrderedDict[Key, Opened], key: Key, open_: Callable[[], Opened]) -> Opened:
    """Return the open object under `key`, or open it; the least recently used one is closed."""
    if key in opened:
        opened.move_to_end(key)
        return opened[key]
    found = opened[key] = open_()
    while len(opened) > _KEPT:
        opened.popitem(last=False)
    return found
