"""Reading an index to match with it: any generation, opened on demand."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeVar

from tocsin.index.generations import Generation, Generations
from tocsin.index.router import Router
from tocsin.index.shard import Shard
from tocsin.index.storage import storage_of

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

    def router(self, generation: int) -> Router:
        """Return a generation's router; an index of one shard has none."""
        folder = self.generation(generation).router
        if folder is None:
            raise self.generations.fault("it has one shard, and so no router")
        return _kept(self._routers, folder, lambda: Router(self.generations.storage.folder(folder)))


def _kept(opened: OrderedDict[Key, Opened], key: Key, open_: Callable[[], Opened]) -> Opened:
    """Return the open object under `key`, or open it; the least recently used one is closed."""
    if key in opened:
        opened.move_to_end(key)
        return opened[key]
    found = opened[key] = open_()
    while len(opened) > _KEPT:
        opened.popitem(last=False)
    return found
