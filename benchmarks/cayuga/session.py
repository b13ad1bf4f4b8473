"""A run of the experiments: how sequences are filled, and what is counted and timed while events come."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final, Protocol

import pyarrow as pa
from msgspec import Struct

from benchmarks.cayuga.inputs import Material
from benchmarks.cayuga.scales import Scale
from benchmarks.cayuga.subject import Loading, Subject, summary
from benchmarks.cayuga.workloads.rows import Rows
from benchmarks.runner.agreement import Answers
from benchmarks.runner.session import MatcherSession
from benchmarks.runner.subject import Contender
from tocsin.matching.encoding.codes import Keys

ALL: Final = "cayuga"
"""The mode in which nothing is switched off."""

_MANY: Final = 50_000  # subscriptions
_FEW: Final = 16  # events of the first batch: with everything switched off, one takes long
_SLOW: Final = 0.1  # seconds of a batch, from which on the next is no larger
_TARGETS: Final = {  # (experiment, measurement, contender, at): what one core is to reach
    **{
        ("subscriptions", "throughput", kind, 400_000): 50_000.0
        for kind in ("LinearStat", "LinearDyn", "Filter")
    },
    ("subscriptions", "throughput", "NonDeterministic", 400_000): 20_000.0,
    ("loading", "loading", "by the column", 400_000): 50_000.0,
    ("ticks", "throughput", "Tocsin, S3", 619_040): 300_000.0,
    ("ticks", "throughput", "Tocsin, S4", 619_040): 300_000.0,
}


class DrawEvents(Protocol):
    """What draws events by number, in batches."""

    def __call__(self, begin: int, end: int, *, batch: int) -> Iterator[pa.Table]:
        """Return those from number `begin` to `end`, as far as there are any."""


class Input(Struct, frozen=True):
    """Subscriptions, and the events of a stream."""

    groups: Sequence[Rows]
    events: DrawEvents
    stream: str
    time: str  # the column that tells when an event happened
    levels: tuple[
        int, ...
    ] = ()  # how many different beginnings there are, by their steps: nodes after merging


class Session(MatcherSession):
    """Fills sequences with subscriptions, and records what events cost them."""

    def __init__(
        self,
        scale: Scale,
        matcher: str,
        material: Material,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__([matcher], progress)
        self.scale = scale
        self.matcher = matcher
        self.material = material
        self._answers = Answers()

    def target(self, name: str, matcher: str, at: float | str) -> float | None:
        """Return what one core is to reach, or None."""
        return _TARGETS.get((self._experiment, name, matcher, at))  # type: ignore[arg-type]

    def called(self, label: str) -> Contender:
        """Return a contender by what it is called in tables: a template, a mode, another system."""
        return Contender(label, self.matcher)

    def try_out(self, kind: str, mode: str, given: Input, events: int) -> None:
        """Use what is measured later; modes that are given the same kind must find the same."""
        subject = Subject(self.matcher, mode)
        subject.load(given.groups)
        answers = [found for _, found in _Pacing(subject, given, events).run(events, float("inf"))]
        self._answers.check((self._experiment, kind), mode, answers)

    def measure(self, label: str, given: Input, at: float | str, *, mode: str = ALL, same: str = "") -> None:
        """Record what it takes to load subscriptions, and what events cost then.

        Contenders that are asked the `same` must answer the same.
        """
        if sum(map(len, given.groups)) > _MANY:
            gc.collect()  # what was measured before took memory that is needed
        contender = self.called(label)
        subject = Subject(self.matcher, mode)
        loading = subject.load(given.groups, lambda text: self.tell(contender, text))
        self.tell(contender, f"{loading.subscriptions:,} subscriptions, events")
        pacing = _Pacing(subject, given, self.scale.batch)
        answers = [found for _, found in pacing.run(self.scale.warm_up, self.scale.seconds)]
        before, spent = subject.runner.stats(), subject.cpu
        taken = list(pacing.run(self.scale.events, self.scale.seconds))
        answers += [found for _, found in taken]
        self._answers.check((self._experiment, at, same or label), label, answers)
        stats = subject.runner.stats()
        events = sum(found.shape[1] for _, found in taken)
        if not events:
            self.left_out.append(f"{self._experiment}: {label} at {at} took all events to warm up")
            return
        each = 1 / median(seconds / found.shape[1] for seconds, found in taken)
        overall = events / sum(seconds for seconds, _ in taken)
        by_processor = events / max(subject.cpu - spent, 1e-9)
        self.record(
            "throughput",
            contender,
            at,
            (each, "events/s"),
            overall=overall,
            by_processor_time=by_processor,
            events=float(events),
        )
        witnesses = sum(int(found[0].sum()) for _, found in taken)
        self.record("witnesses", contender, at, (witnesses / events, "an event"))
        self._record_loading(contender, at, loading)
        levels: dict[str, float | str | None] = {
            f"level_{number}": float(nodes) for number, nodes in enumerate(given.levels, 1)
        }
        self.record("nodes", contender, at, (float(stats.nodes), ""), **levels)
        for name in ("ends", "active_nodes", "instances"):
            self.record(name.replace("_", " "), contender, at, (float(getattr(stats, name)), ""))
        counts = {
            "visited_nodes": "visited nodes",
            "examined": "looked at",
            "matched_predicates": "matched predicates",
        }
        for name, series in counts.items():
            grown = getattr(stats, name) - getattr(before, name)
            self.record(series, contender, at, (grown / events, "an event"))

    def _record_loading(self, contender: Contender, at: float | str, loading: Loading) -> None:
        self.record(
            "loading",
            contender,
            at,
            (loading.rate, "subscriptions/s"),
            templates=float(loading.templates),
            preparing=loading.preparing,
            adding=loading.adding,
        )
        self.record("memory", contender, at, (loading.bytes_each, "bytes each"), grown_mb=loading.resident_mb)


class _Pacing:
    """Gives events to sequences, in batches that grow as long as they are quick."""

    def __init__(self, subject: Subject, given: Input, most: int) -> None:
        self._subject = subject
        self._given = given
        self._most = most
        self._size = min(_FEW, most)
        self._place = 0

    def run(self, events: int, budget: float) -> Iterator[tuple[float, Keys]]:
        """Return, of each batch, the seconds and the answers, until there are no more events or the time is up."""
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
