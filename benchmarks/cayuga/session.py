"""A run of the experiments: how sequences are filled, and their counts and times."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Final, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.cayuga.workloads import feeds, technical
from benchmarks.cayuga.workloads.feeds import Feed, make_feed, read_feed
from benchmarks.cayuga.workloads.stocks import make_prices, read_prices
from benchmarks.cayuga.workloads.technical import TABLE_3, Kind, Parameters, Workload
from benchmarks.runner.agreement import Agreement
from benchmarks.runner.session import Progress, Session, Targets, find_data, origins, silent
from benchmarks.runner.subject import Loading, measure_loading
from benchmarks.workloads.tabular import FilledTemplate
from tocsin.engine.event_sources import require_columns, timed_rows
from tocsin.matching import create_matcher
from tocsin.matching.encoding.codes import Keys
from tocsin.model.errors import SubscriptionError
from tocsin.model.queries import Query
from tocsin.model.queries import Sequence as Pattern
from tocsin.model.ticks import StreamTicks
from tocsin.sequences import MODES, AutomatonMatcher
from tocsin.sequences.compiling.compiler import CompiledSequence, compile_sequence
from tocsin.sequences.matches import SequenceMatches

ALL: Final = "cayuga"
"""The mode in which nothing is switched off."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
VARIED: Final[Kind] = "LinearStat"  # where something else than the number of subscriptions is varied

_MANY: Final = 50_000  # subscriptions
_FEW: Final = 16  # events of the first batch: with everything switched off, one takes long
_SLOW: Final = 0.1  # seconds of a batch, from which on the next is no larger
_TRIED: Final = 200  # events before anything is timed
_FILES: Final = {"feed": "news.jsonl.gz", "prices": "stocks.jsonl.zst"}

DrawEvents: TypeAlias = Callable[..., Iterator[pa.Table]]
"""Draws events from number `begin` to `end`, as far as there are any, in batches of `batch`."""


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


class Input(Struct, frozen=True):
    """Subscriptions, and the events of a stream."""

    groups: Sequence[FilledTemplate]
    events: DrawEvents
    stream: str
    time: str  # the column with an event's time
    levels: tuple[int, ...] = ()  # different beginnings of each length: nodes after merging


def technical_input(kind: Kind, count: int, parameters: Parameters = TABLE_3) -> Input:
    """Return the technical benchmark's subscriptions of a kind, and its events."""
    workload = Workload(parameters, kind)
    groups, levels = workload.subscriptions(0, count), workload.levels(count)
    return Input(groups, workload.events, technical.STREAM, technical.TIME, levels)


def feed_input(articles: Feed, kind: feeds.Kind, count: int) -> Input:
    """Return subscriptions of a kind to a feed, and its articles."""
    return Input(articles.subscriptions(kind, count), articles.batches, feeds.STREAM, feeds.TIME)


class CayugaSession(Session):
    """Fills sequences with subscriptions, and records the cost of events."""

    targets: ClassVar[Targets] = {
        **{
            ("subscriptions", "throughput", kind, 400_000): 50_000.0
            for kind in ("LinearStat", "LinearDyn", "Filter")
        },
        ("subscriptions", "throughput", "NonDeterministic", 400_000): 20_000.0,
        ("loading", "loading", "by the column", 400_000): 50_000.0,
        ("ticks", "throughput", "Tocsin, S3", 619_040): 300_000.0,
        ("ticks", "throughput", "Tocsin, S4", 619_040): 300_000.0,
    }

    def __init__(
        self,
        scale: Any,
        matcher: str = "adaptive",
        *,
        data: Path | None = None,
        feed: Path | None = None,
        prices: Path | None = None,
        progress: Progress = silent,
    ) -> None:
        super().__init__(scale, progress)
        create_matcher(matcher)  # raises for an unknown one
        self.matcher = matcher
        advice = "leave out --data, and the data is made up"
        self.files = find_data(_FILES, data, advice, feed=feed, prices=prices)
        self._agreement = Agreement()

    @cached_property
    def feed(self) -> Feed:
        """Return the articles."""
        path = self.files["feed"]
        return make_feed(self.scale.articles) if path is None else read_feed(path, self.scale.articles)

    @cached_property
    def prices(self) -> pa.Table:
        """Return the prices of stocks."""
        path = self.files["prices"]
        return make_prices(self.scale.stocks, self.scale.days) if path is None else read_prices(path)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names, with where the data comes from."""
        return {**super().parameters(), "matcher": self.matcher, **origins(self.files)}

    def compile(self, measures: Sequence[Callable[[Any], None]]) -> None:  # noqa: ARG002 - all need the sequences
        """Use every template in every mode; values are few, so that much matches, and all modes must agree."""
        often, small = replace(TABLE_3, domain=3), make_feed(_TRIED, 10)
        tried: list[tuple[str, str, Input]] = [
            (kind, mode, _largest(technical_input(kind, 1_000, often))) for kind in KINDS for mode in MODES
        ]
        tried += [(kind, mode, feed_input(small, kind, _TRIED)) for kind in feeds.TEMPLATES for mode in MODES]
        tried.append(("many", ALL, technical_input(VARIED, 5_000)))  # for which a matcher uses all it has
        for kind, mode, given in tried:
            self.tell(mode, "compiling")
            subject = Subject(self.matcher, mode)
            subject.load(given.groups)
            found = [found for _, found in _Pacing(subject, given, _TRIED).run(_TRIED, float("inf"))]
            self._agreement.check((self.experiment, kind), mode, found)

    def measure(self, label: str, given: Input, at: float | str, *, mode: str = ALL, same: str = "") -> None:
        """Record the cost of loading subscriptions, and of events then; contenders with the `same` input must agree."""
        if sum(map(len, given.groups)) > _MANY:
            gc.collect()  # the memory of the measurements before is needed
        subject = Subject(self.matcher, mode)
        loading = subject.load(given.groups, lambda text: self.tell(label, text))
        self.tell(label, f"{loading.subscriptions:,} subscriptions, events")
        pacing = _Pacing(subject, given, self.scale.batch)
        found = [found for _, found in pacing.run(self.scale.warm_up, self.scale.seconds)]
        before, spent = subject.runner.stats(), subject.cpu
        taken = list(pacing.run(self.scale.events, self.scale.seconds))
        found += [found for _, found in taken]
        self._agreement.check((self.experiment, at, same or label), label, found)
        events = sum(found.shape[1] for _, found in taken)
        if not events:
            self.left_out.append(f"{self.experiment}: {label} at {at} took all events to warm up")
            return
        self.record(
            "throughput",
            label,
            at,
            1 / median(seconds / found.shape[1] for seconds, found in taken),
            "events/s",
            overall=events / sum(seconds for seconds, _ in taken),
            by_processor_time=events / max(subject.cpu - spent, 1e-9),
            events=float(events),
        )
        witnesses = sum(int(found[0].sum()) for _, found in taken)
        self.record("witnesses", label, at, witnesses / events, "an event")
        self.record_loading(label, at, loading, templates=float(len(given.groups)))
        stats = subject.runner.stats()
        levels = {f"level_{number}": float(nodes) for number, nodes in enumerate(given.levels, 1)}
        self.record("nodes", label, at, stats.nodes, "", **levels)
        for name in ("ends", "active_nodes", "instances"):
            self.record(name.replace("_", " "), label, at, getattr(stats, name), "")
        # `looked at` is the name in recorded results.
        for name, field in (("visited nodes", ""), ("looked at", "examined"), ("matched predicates", "")):
            counter = field or name.replace(" ", "_")
            grown = getattr(stats, counter) - getattr(before, counter)
            self.record(name, label, at, grown / events, "an event")

    def record_loading(self, label: str, at: float | str, loading: Loading, **details: float) -> None:
        """Keep the rate of loading and the memory."""
        details |= {"preparing": loading.preparing, "adding": loading.adding}
        self.record("loading", label, at, loading.rate, "subscriptions/s", **details)
        self.record("memory", label, at, loading.bytes_each, "bytes each", grown_mb=loading.resident_mb)


def _largest(given: Input, templates: int = 3) -> Input:
    """Return the subscriptions of the templates that have the most."""
    return replace(given, groups=sorted(given.groups, key=len, reverse=True)[:templates])


class _Pacing:
    """Gives events to sequences, in batches that grow as long as they are quick."""

    def __init__(self, subject: Subject, given: Input, most: int) -> None:
        self._subject = subject
        self._given = given
        self._most = most
        self._size = min(_FEW, most)
        self._place = 0

    def run(self, events: int, budget: float) -> Iterator[tuple[float, Keys]]:
        """Return the seconds and a summary of each batch, until there are no more events or the time is up."""
        end, begun, given = self._place + events, time.perf_counter(), self._given
        while self._place < end and time.perf_counter() - begun < budget:
            size = min(self._size, end - self._place)
            table = next(given.events(self._place, self._place + size, batch=size), None)
            if table is None:
                return
            seconds, witnesses = self._subject.advance(table, given.stream, given.time)
            self._place += table.num_rows
            if seconds < _SLOW:
                self._size = min(2 * self._size, self._most)
            yield seconds, summary(witnesses, table.num_rows)
