"""Workloads drawn in blocks, a seed for each: a batch of any size is cut from them, and is always the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import Keys
from tocsin.replay.numbered import NumberedEvents, NumberedSubscriptions

SubscriptionBatch = TypeVar("SubscriptionBatch")
EventRows = TypeVar("EventRows")

BLOCK: Final = 1 << 15  # rows that one seed draws, unless they are wide


class Ragged(Struct, frozen=True):
    """Rows of different lengths: the cells of row i are those from `offsets[i]` to `offsets[i + 1]`, in every column."""

    offsets: Keys  # int64[rows + 1]
    columns: tuple[NDArray[Any], ...]  # [cells] each

    @classmethod
    def even(cls, *columns: NDArray[Any]) -> Ragged:
        """Return rows that are all of one width, given as a matrix for each column."""
        count, width = columns[0].shape
        offsets = np.arange(count + 1, dtype=np.int64) * width
        return cls(offsets, tuple(column.reshape(-1) for column in columns))

    @classmethod
    def where(cls, is_cell: NDArray[np.bool_], *columns: NDArray[Any]) -> Ragged:
        """Return rows of the cells of matrices where `is_cell` is true."""
        offsets = np.zeros(len(is_cell) + 1, dtype=np.int64)
        np.cumsum(is_cell.sum(axis=1), out=offsets[1:])
        return cls(offsets, tuple(column[is_cell] for column in columns))

    @classmethod
    def first(cls, sizes: NDArray[np.integer[Any]], *columns: NDArray[Any]) -> Ragged:
        """Return rows of the first `sizes` cells of each row of matrices."""
        return cls.where(np.arange(columns[0].shape[1]) < sizes[:, None], *columns)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def slice(self, begin: int, end: int) -> Ragged:
        """Return the rows from `begin` to `end`."""
        offsets = self.offsets[begin : end + 1]
        cells = slice(int(offsets[0]), int(offsets[-1]))
        return Ragged(offsets - offsets[0], tuple(column[cells] for column in self.columns))


def joined(parts: Sequence[Ragged]) -> Ragged:
    """Return the rows of all parts, one after another; there is at least one part."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    columns = zip(*(part.columns for part in parts), strict=True)
    return Ragged(offsets, tuple(np.concatenate(column) for column in columns))


class Blocks:
    """Rows by number. `draw` makes the rows of a block from a generator that depends on the seed alone."""

    def __init__(
        self, seed: Sequence[int], draw: Callable[[Generator, int], Ragged], *, size: int = BLOCK
    ) -> None:
        self._seed = list(seed)
        self._draw = draw
        self._size = size
        self._newest: tuple[int, Ragged] | None = None

    def rows(self, begin: int, end: int) -> Ragged:
        """Return the rows from `begin` to `end`; the newest block is kept, for small batches come one by one."""
        parts = []
        for block in range(begin // self._size, max(-(-end // self._size), begin // self._size + 1)):
            if self._newest is None or self._newest[0] != block:
                random = np.random.default_rng([*self._seed, block])
                self._newest = block, self._draw(random, self._size)
            first = block * self._size
            parts.append(self._newest[1].slice(max(begin - first, 0), min(end - first, self._size)))
        return joined(parts)

    def batches(self, begin: int, end: int, size: int) -> Iterator[tuple[int, Ragged]]:
        """Return the rows from `begin` to `end` in batches, each with its first row's number."""
        for start in range(begin, end, size):
            yield start, self.rows(start, min(start + size, end))


class Workload(ABC, Generic[SubscriptionBatch, EventRows]):
    """Subscriptions and events drawn by `parameters`; the same seed draws the same ones, whatever the batches."""

    subscription_stream = 0  # of random numbers
    event_block = BLOCK  # rows of events that one seed draws

    def __init__(self, parameters: Any, seed: int = 1, *, first_id: int = 0) -> None:
        self.parameters = parameters
        self.first_id = first_id
        self._subscriptions = Blocks((seed, self.subscription_stream), self._draw_subscriptions)
        self._events = Blocks((seed, 1), self._draw_events, size=self.event_block)

    def subscriptions(self, begin: int, end: int, *, batch: int = 1 << 16) -> Iterator[SubscriptionBatch]:
        """Return the subscriptions from number `begin` to `end`, in batches; an id is `first_id` and the number."""
        for first, rows in self._subscriptions.batches(begin, end, batch):
            ids = np.arange(first, first + len(rows), dtype=np.int64) + self.first_id
            yield self._subscriptions_of(ids, rows)

    def events(self, begin: int, end: int, *, batch: int = 1_000) -> Iterator[EventRows]:
        """Return the events from number `begin` to `end`, in batches."""
        for _, rows in self._events.batches(begin, end, batch):
            yield self._events_of(rows)

    @abstractmethod
    def _draw_subscriptions(self, random: Generator, count: int) -> Ragged:
        """Return the columns of a block of subscriptions."""

    @abstractmethod
    def _draw_events(self, random: Generator, count: int) -> Ragged:
        """Return the columns of a block of events."""

    @abstractmethod
    def _subscriptions_of(self, ids: Keys, rows: Ragged) -> SubscriptionBatch:
        """Return drawn rows as subscriptions."""

    @abstractmethod
    def _events_of(self, rows: Ragged) -> EventRows:
        """Return drawn rows as events."""


class NumberedWorkload(Workload[NumberedSubscriptions, NumberedEvents]):
    """A workload over numbered attributes; the columns are attributes, operators, lows and highs, or values."""

    def _subscriptions_of(self, ids: Keys, rows: Ragged) -> NumberedSubscriptions:
        return NumberedSubscriptions(ids, rows.offsets, *rows.columns)

    def _events_of(self, rows: Ragged) -> NumberedEvents:
        return NumberedEvents(rows.offsets, *rows.columns)


def check_parameters(faults: Mapping[str, bool]) -> None:
    """Raise `ValueError` for the first fault that is true."""
    for reason, is_wrong in faults.items():
        if is_wrong:
            raise ValueError(reason)
