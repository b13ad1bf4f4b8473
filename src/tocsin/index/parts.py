"""Shards that are built apart, each by a process of its own, and then published together."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any

from msgspec import Struct

from tocsin.index.contents import Contents
from tocsin.index.generations import ShardEntry
from tocsin.index.placement import Placement, Route
from tocsin.index.shard import ShardDraft
from tocsin.index.storage import LocalStorage, Storage


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
