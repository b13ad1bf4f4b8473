"""Events that are kept until a time of their own, so that filters which are added later meet them once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from tocsin.index.reader import IndexReader
from tocsin.index.shard import RowNumbers
from tocsin.matching.batches import EventBatch
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model.options import ALWAYS
from tocsin.sharding.output import OutputWriter
from tocsin.sharding.turns import Cause, Waiting
from tocsin.structures.array_types import Int64s


class FilterMatch(NamedTuple):
    """An event, by its row, and a filter that it satisfies, with the selected values as JSON."""

    row: int
    subscription: str
    values: str | None


class AddedFilters(Protocol):
    """The filters that a generation has and an earlier one has not."""

    def match(self, events: EventBatch, ends: Int64s) -> Iterator[FilterMatch]:
        """Yield the filters that each event satisfies."""


class AddedInIndex:
    """The filters that came into an index from one generation to a later one."""

    def __init__(self, reader: IndexReader, older: int, newer: int) -> None:
        self._reader = reader
        self._newer = newer
        self._numbers = reader.added_filters(older, newer)  # by shard of the index

    def match(self, events: EventBatch, ends: Int64s) -> Iterator[FilterMatch]:
        """Yield the filters that each event satisfies."""
        for number, added in self._numbers.items():
            shard = self._reader.shard(self._newer, number)
            found = shard.match(events, ends)
            is_new = np.isin(found.numbers, added)
            found = RowNumbers(found.rows[is_new], found.numbers[is_new])
            columns = found.rows.tolist(), shard.ids(found.numbers), shard.values(found, events)
            for row, id_, values in zip(*columns, strict=True):
                yield FilterMatch(row, id_.as_py(), values.as_py())


class KeptEvents:
    """Events with `valid_until`, in the order they came, until an event has come that ended then or later."""

    def __init__(self, events: Iterable[Waiting] = ()) -> None:
        self._events = list(events)
        self._now = ALWAYS

    def add(self, kept: Waiting) -> None:
        """Keep an event, unless its time is over."""
        if self._is_valid(kept):
            self._events.append(kept)

    def pass_time(self, now: int) -> None:
        """Let go of the events whose time is over."""
        if now > self._now:
            self._now = now
            self._events = list(filter(self._is_valid, self._events))

    def meet(self, filters: AddedFilters, output: OutputWriter) -> None:
        """Write the notifications of new filters that events satisfy which are kept."""
        if not self._events:
            return
        events = [kept.event for kept in self._events]
        batch = TimedBatch(events)
        for row, subscription, values in filters.match(batch.batch, batch.ends):
            cause = Cause(events[row].id, None, self._events[row].carried)
            output.met(subscription, events[row], values, cause)

    def _is_valid(self, kept: Waiting) -> bool:
        return kept.event.valid_until is not None and kept.event.valid_until > self._now

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)
