"""A shard: some of an index's subscriptions, in a saved matcher that any process can open."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.index.shard_registry import WHOLE_EVENT, SavedRegistry, ShardRegistry, open_registry
from tocsin.language.semantics import selected_values
from tocsin.matching import EventBatch, IdArray, Matcher, Oracle, create_matcher, open_matcher, save_matcher
from tocsin.matching.saved import Savable
from tocsin.matching.starting_matcher import Compiling, StartingMatcher, saving_matcher
from tocsin.model.conditions import Conjunction
from tocsin.model.errors import MatcherError
from tocsin.model.options import is_valid_at
from tocsin.model.queries import SelectItem
from tocsin.model.values import json_of_opaque

_MATCHER: Final = "matcher"
_encode: Final = msgspec.json.Encoder(enc_hook=json_of_opaque).encode


class RowNumbers(NamedTuple):
    """Pairs as columns: an event's row in its batch, and the number of a subscription or of a shard."""

    rows: NDArray[np.int64]
    numbers: NDArray[np.int64]


class Shard:
    """A saved shard, opened to be matched. Its files are mapped, and never written to."""

    def __init__(self, folder: Path) -> None:
        matcher = open_matcher(folder / _MATCHER)
        self.matcher: Matcher = (
            StartingMatcher(matcher, compiling=Compiling.NEVER) if isinstance(matcher, Oracle) else matcher
        )
        self.registry: SavedRegistry = open_registry(folder)
        self._items: dict[int, tuple[SelectItem, ...]] = {}

    def match(self, events: EventBatch, ends: NDArray[np.int64]) -> RowNumbers:
        """Return the pairs of event and subscription that match, for events that ended at `ends`."""
        matches = self.matcher.match(events)
        numbers = matches.ids
        rows = matches.rows
        if self.registry.has_validity and len(numbers):
            held = self.registry
            applies = is_valid_at(held.valid_from[numbers], held.valid_until[numbers], ends[rows])
            return RowNumbers(rows[applies], numbers[applies])
        return RowNumbers(rows, numbers)

    def ids(self, numbers: NDArray[np.int64]) -> Any:
        """Return the ids of subscriptions as an Arrow array of strings."""
        return self.registry.ids.take(pa.array(numbers)).cast(pa.string())

    def values(self, matches: RowNumbers, events: EventBatch) -> Any:
        """Return the values that each match's subscription selects, as JSON; null if it selects none."""
        selects = self.registry.select[matches.numbers]
        values: list[str | None] = [None] * len(selects)
        for position in np.flatnonzero(selects != WHOLE_EVENT).tolist():
            code = int(selects[position])
            if code not in self._items:
                self._items[code] = self.registry.select_items(code)
            values[position] = _selected(self._items[code], events.attributes(int(matches.rows[position])))
        return pa.array(values, pa.string())


def _selected(items: tuple[SelectItem, ...], attributes: Mapping[str, Any]) -> str:
    return _encode(selected_values(items, attributes, attributes)).decode()


@runtime_checkable
class _ConjunctionSource(Protocol):
    """A matcher that returns its conjunctions."""

    def conjunctions(self) -> Iterator[tuple[IdArray, Conjunction]]:
        """Return every conjunction with its subscription's id, as an array of one."""


class ShardDraft:
    """A shard that is being built or changed, to be saved as a new one."""

    def __init__(self, matcher: Matcher, registry: ShardRegistry) -> None:
        self.matcher = matcher
        self.registry = registry

    @classmethod
    def new(cls, matcher: str | None, options: Mapping[str, Any]) -> ShardDraft:
        """Return an empty shard; without a matcher's name it starts with brute force."""
        made = saving_matcher(Oracle()) if matcher is None else create_matcher(matcher, **options)
        return cls(made, ShardRegistry())

    @classmethod
    def of(cls, folder: Path) -> ShardDraft:
        """Return a saved shard, to be changed; its files stay as they are."""
        return cls(open_matcher(folder / _MATCHER), ShardRegistry.restore(open_registry(folder)))

    def let_grow(self) -> None:
        """Replace brute force by an index if there are enough subscriptions."""
        if isinstance(self.matcher, Oracle):
            self.matcher = saving_matcher(self.matcher)

    @property
    def _current(self) -> Matcher:
        return self.matcher.current if isinstance(self.matcher, StartingMatcher) else self.matcher

    def save(self, folder: Path) -> None:
        """Write the shard to a new folder."""
        assert isinstance(self._current, Savable)  # noqa: S101 - all registered matchers are
        folder.mkdir(parents=True)
        try:
            save_matcher(self._current, folder / _MATCHER)
            self.registry.save(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def conjunctions(self) -> dict[int, list[Conjunction]]:
        """Return the conjunctions by subscription number; raise `MatcherError` if the matcher cannot return them."""
        matcher = self._current
        if not isinstance(matcher, _ConjunctionSource):
            raise MatcherError(f"a matcher of kind {type(matcher).__name__} cannot return its conjunctions")
        found: dict[int, list[Conjunction]] = {
            number: [] for _, number in self.registry.subscriptions.items()
        }
        for ids, conjunction in matcher.conjunctions():
            found[int(ids[0])].append(conjunction)
        return found

    @property
    def bytes(self) -> int:
        """Return the memory that the matcher takes."""
        return self.matcher.stats().bytes
