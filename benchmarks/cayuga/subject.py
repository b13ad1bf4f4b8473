"""Sequences under measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from msgspec import Struct

from benchmarks.cayuga.workloads.rows import Rows
from tocsin.matching.encoding.codes import Keys
from tocsin.model.errors import SubscriptionError
from tocsin.model.queries import Query
from tocsin.model.queries import Sequence as Pattern
from tocsin.replay.memory import give_back, resident_mb
from tocsin.sequences import MODES, AutomatonMatcher
from tocsin.sequences.compilation import CompiledSequence, compile_sequence
from tocsin.sequences.matches import SequenceMatches
from tocsin.sequences.ticks import Ticks
from tocsin.sequences.timed_batch import TimedBatch


class Loading(Struct, frozen=True):
    """What it took to add subscriptions: to read and compile their templates, and to add their rows."""

    templates: int
    subscriptions: int
    preparing: float  # seconds
    adding: float  # seconds
    bytes: int  # in arrays
    resident_mb: float  # what the process grew by

    @property
    def rate(self) -> float:
        """Return the subscriptions added a second, the templates' part included."""
        return self.subscriptions / max(self.preparing + self.adding, 1e-9)

    @property
    def bytes_each(self) -> float:
        """Return the bytes per subscription."""
        return self.bytes / max(self.subscriptions, 1)


class Subject:
    """Sequences in one of the modes, with one matcher for their static parts."""

    def __init__(self, matcher: str, mode: str) -> None:
        self.mode = MODES[mode]
        self.runner = AutomatonMatcher(matcher=matcher, mode=self.mode)
        self.cpu = (
            0.0  # seconds of the processor that events took; unlike the clock's, others do not add to them
        )

    def prepare(self, query: Query) -> CompiledSequence:
        """Return a sequence compiled for the mode, in which durations are ticks."""
        if not isinstance(query, Pattern):
            raise SubscriptionError("only sequences are measured here; a filter is asked of a matcher")
        mode = self.mode
        return compile_sequence(query, Ticks(), index_edges=mode.edges, index_filters=mode.instances)

    def load(self, groups: Sequence[Rows], progress: Callable[[str], None] = lambda _: None) -> Loading:
        """Add subscriptions; drawing them is not timed."""
        give_back()
        before, preparing, adding, done = resident_mb(), 0.0, 0.0, 0
        for rows in groups:
            start = time.perf_counter()
            prepared = self.prepare(rows.template().query)
            between = time.perf_counter()
            self.runner.add(rows.numbers, prepared, rows.columns)
            adding += time.perf_counter() - between
            preparing += between - start
            done += len(rows)
            progress(f"{done:,} loaded")
        held = self.runner.stats().bytes
        return Loading(len(groups), done, preparing, adding, held, resident_mb() - before)

    def advance(self, table: pa.Table, stream: str, time_column: str) -> tuple[float, SequenceMatches]:
        """Take further events; return the seconds that took, and what they completed."""
        arrivals = TimedBatch.of_table(table, stream=stream, time=time_column)
        start, processor = time.perf_counter(), time.process_time()
        witnesses = self.runner.process(arrivals)
        self.cpu += time.process_time() - processor
        return time.perf_counter() - start, witnesses


def summary(witnesses: SequenceMatches, events: int) -> Keys:
    """Return how many witnesses each event completed, and the sum of their subscriptions' numbers."""
    counts = np.bincount(witnesses.rows, minlength=events)
    sums = np.zeros(events, dtype=np.int64)
    np.add.at(sums, witnesses.rows, witnesses.subscriptions)
    return np.stack([counts.astype(np.int64), sums])
