"""Sequences under measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from benchmarks.runner.subject import Loading, measure_loading
from benchmarks.workloads.tabular import FilledTemplate
from tocsin.engine.event_sources import require_columns, timed_rows
from tocsin.matching.encoding.codes import Keys
from tocsin.model.errors import SubscriptionError
from tocsin.model.queries import Query
from tocsin.model.queries import Sequence as Pattern
from tocsin.model.ticks import StreamTicks
from tocsin.sequences import MODES, AutomatonMatcher
from tocsin.sequences.compiling.compiler import CompiledSequence, compile_sequence
from tocsin.sequences.matches import SequenceMatches


class Subject:
    """Sequences in one of the modes, with one matcher for their static parts."""

    def __init__(self, matcher: str, mode: str) -> None:
        self.mode = MODES[mode]
        self.runner = AutomatonMatcher(matcher=matcher, mode=self.mode)
        self.cpu = 0.0  # processor seconds of events; unlike the clock's, other processes do not add to them

    def prepare(self, query: Query) -> CompiledSequence:
        """Return a sequence compiled for the mode, in which durations are ticks."""
        if not isinstance(query, Pattern):
            raise SubscriptionError("only sequences are measured here; a filter is measured with a matcher")
        return compile_sequence(query, mode=self.mode)

    def load(
        self, groups: Sequence[FilledTemplate], progress: Callable[[str], None] = lambda _: None
    ) -> Loading:
        """Add subscriptions and return the cost; compiling their templates is the preparing."""
        return measure_loading(
            groups,
            prepare=lambda rows: self.prepare(rows.template().query),
            add=lambda rows, prepared: self.runner.add(rows.numbers, prepared, rows.columns),
            count=len,
            held=lambda: self.runner.stats().bytes,
            progress=progress,
        )

    def advance(self, table: pa.Table, stream: str, time_column: str) -> tuple[float, SequenceMatches]:
        """Process further events; return the seconds and the completed matches."""
        rows = require_columns(table.sort_by(time_column), stream)
        batch = timed_rows(rows, time_column, None, StreamTicks())
        start, processor = time.perf_counter(), time.process_time()
        matches = self.runner.process(batch)
        self.cpu += time.process_time() - processor
        return time.perf_counter() - start, matches


def summary(matches: SequenceMatches, events: int) -> Keys:
    """Return the number of matches that each event completed, and the sum of their subscriptions' numbers."""
    counts = np.bincount(matches.rows, minlength=events)
    sums = np.zeros(events, dtype=np.int64)
    np.add.at(sums, matches.rows, matches.subscriptions)
    return np.stack([counts.astype(np.int64), sums])
