"""A run of the experiments: how a matcher is filled and timed, unless it would not fit or take too long."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

from msgspec import Struct

from benchmarks.opindex.workloads.keywords import Corpus, make_corpus, read_corpus
from benchmarks.opindex.workloads.prefix import PrefixParameters, PrefixWorkload
from benchmarks.opindex.workloads.products import Catalogue, make_catalogue, read_catalogue
from benchmarks.opindex.workloads.table3 import Parameters, Workload
from benchmarks.runner.agreement import Agreement, summary
from benchmarks.runner.session import MatcherSession, Progress, Targets, find_data, origins, silent
from benchmarks.runner.subject import Contender, Loading, Subject
from benchmarks.workloads.words import read_words
from tocsin.matching import create_matcher, takes_clauses
from tocsin.matching.encoding.codes import Keys
from tocsin.replay.numbered import Events, Subscriptions
from tocsin.structures.memory import available_mb

_DOES_NOT_FIT: Final = "does not fit"
_LEFT_OUT: Final = "left out"
GAPS: Final = (_DOES_NOT_FIT, _LEFT_OUT)
"""Recorded, with the estimate, in place of measurements that were not taken."""

_GROWING: Final = 1.5  # while an array grows, the old one is still there
_MILLION: Final = 1_000_000
_USUAL: Final = {"documents": "news.jsonl.gz", "catalogue": "products.jsonl.zst", "words": ""}
_TEXT: Final = ("title", "description")
_ADVICE: Final = (
    "name other files with --documents, --catalogue and --words, or name none, and the data is made up"
)

DrawEvents: TypeAlias = Callable[..., Iterator[Events]]
"""Draws events from number `begin` to `end`, in batches of `batch`."""


class Input(Struct, frozen=True):
    """Subscriptions, and kinds of events to match with them; the only kind has no name.

    Where only events are varied, a kind is a number: the place it is measured at.
    """

    subscriptions: Callable[[int, int], Iterator[Subscriptions]]
    events: Mapping[str | int, DrawEvents]

    @classmethod
    def of(cls, workload: Any) -> Input:
        """Return a workload's subscriptions and events."""
        return cls(workload.subscriptions, {"": workload.events})


class Pace(Struct, frozen=True):
    """The cost of a subscription, assuming that every cost grows with their number."""

    seconds: float
    mb: float


class OpIndexSession(MatcherSession):
    """Fills matchers from inputs and times them; `memory` is the GB they may take, if less than is available."""

    paper = ("opindex", "opindex-bs", "dynamic", "amkh", "k-index", "be-tree")
    targets: ClassVar[Targets] = {
        ("input A", "matching time", "opindex", _MILLION): 40.0,
        ("input A", "build time", "opindex", _MILLION): 3.0,
        ("input A", "resident memory", "opindex", _MILLION): 300.0,
        ("input A", "matching time", "opindex", 10 * _MILLION): 300.0,
        ("prefix share", "matching time", "opindex", 100): 100.0,
        ("products", "matching time", "opindex", _MILLION): 100.0,
    }

    def __init__(
        self,
        scale: Any,
        matcher: Sequence[str] = (),
        *,
        data: Path | None = None,
        documents: Path | None = None,
        catalogue: Path | None = None,
        words: Path | None = None,
        text: Sequence[str] = (),
        memory: float = float("inf"),
        progress: Progress = silent,
    ) -> None:
        super().__init__(scale, matcher, progress=progress)
        given = {"documents": documents, "catalogue": catalogue, "words": words}
        self.files = find_data(_USUAL, data, _ADVICE, **given)
        self.text = None if tuple(text) == ("*",) else tuple(text) or _TEXT
        self._memory_mb = memory * 1e3
        self._agreement = Agreement()
        self._paces: dict[str, Pace] = {}  # by contender, in the current experiment

    @cached_property
    def corpus(self) -> Corpus:
        """Return the documents."""
        if (path := self.files["documents"]) is None:
            return make_corpus(self.scale.documents, self.scale.words)
        return read_corpus(path, self.text, self.scale.words, self.progress)

    @cached_property
    def catalogue(self) -> Catalogue:
        """Return the products."""
        if (path := self.files["catalogue"]) is None:
            return make_catalogue(self.scale.catalogue, self.scale.catalogue_attributes)
        return read_catalogue(path, progress=self.progress)

    @cached_property
    def words(self) -> tuple[str, ...] | None:
        """Return the given words, if there are any."""
        return None if (path := self.files["words"]) is None else read_words(path)

    def begin(self, experiment: str) -> None:
        """Assign the following measurements to an experiment."""
        super().begin(experiment)
        self._paces.clear()

    def small_workloads(self) -> Sequence[Any]:
        """Return a workload of numbers and one of words."""
        words = PrefixParameters(numbers=100, words=1_000, word_share=0.5)
        return [Workload(Parameters(attributes=1_000)), PrefixWorkload(words)]

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names, with where the data comes from."""
        return {**super().parameters(), **origins(self.files)}

    def compare(
        self, given: Input, at: float | str, count: int, *, growing: bool = False, clauses: bool = False
    ) -> None:
        """Measure all matchers, or those that hold `clauses`, with an input's first `count` subscriptions."""
        for contender in self._holding_clauses() if clauses else self.contenders:
            self.measure(contender, given, at, count, growing=growing)

    def _holding_clauses(self) -> Iterator[Contender]:
        """Return the matchers that hold clauses; the others are named as left out."""
        for contender in self.contenders:
            if takes_clauses(create_matcher(contender.matcher, **contender.options)):
                yield contender
            elif (reason := f"{self.experiment}: {contender.label} holds no clauses") not in self.left_out:
                self.left_out.append(reason)

    def measure(
        self, contender: Contender, given: Input, at: float | str, count: int, *, growing: bool = False
    ) -> None:
        """Record the cost of loading an input's first subscriptions into a matcher, and of matching its events.

        A matcher that would not fit in memory or would take too long is recorded as that. The estimate comes from the
        number before if the numbers of subscriptions are `growing`, else from a small number of the same ones.
        """
        pace = self._paces.get(contender.label) if growing else None
        if pace is None and count > self.scale.tried:
            self.tell(contender.label, "estimating")
            pace = self._fill(contender, given, self.scale.tried, None)
        if pace is None or self._may(contender.label, at, count, pace):
            pace = self._fill(contender, given, count, at)
        self._paces[contender.label] = pace

    def _may(self, label: str, at: float | str, count: int, pace: Pace) -> bool:
        """Return whether `count` subscriptions fit and do not take too long; record it if not."""
        needed, there = pace.mb * count * _GROWING, min(available_mb(), self._memory_mb)
        seconds = pace.seconds * count
        where = f"{self.experiment}: {label} at {at if isinstance(at, str) else f'{at:,}'}"
        if needed > there:
            self.left_out.append(
                f"{where} {_DOES_NOT_FIT}, it would need about {needed / 1e3:,.1f} GB of {there / 1e3:,.1f}"
            )
            self.record(_DOES_NOT_FIT, label, at, needed / 1e3, "GB")
        elif seconds > self.scale.patience:
            self.left_out.append(f"{where} {_LEFT_OUT}, it would take about {seconds:,.0f} s")
            self.record(_LEFT_OUT, label, at, seconds, "s")
        else:
            return True
        return False

    def _fill(self, contender: Contender, given: Input, count: int, at: float | str | None) -> Pace:
        """Fill a matcher, match events and return the pace; record the costs at a place, unless `at` is None."""
        scale, label = self.scale, contender.label
        if count > scale.tried:
            gc.collect()  # the memory of matchers before it is needed
        subject = Subject(contender)
        drawn = given.subscriptions(0, count)
        loading = subject.load(drawn, lambda text: self.tell(label, f"{text} of {count:,}"))
        if at is not None and not any(isinstance(kind, int) for kind in given.events):
            self._record_loading(label, at, loading)
        seconds = loading.seconds
        for kind, draw in given.events.items():
            self.tell(label, f"matching {kind}".rstrip())
            begun = time.perf_counter()
            first = min(scale.warm_up, scale.batch) if at is None else scale.warm_up
            batches = draw(0, first, batch=scale.batch)
            taken = [subject.match(events).seconds / scale.batch for events in batches]
            if at is not None:
                self._record_matching(subject, draw, kind, kind if isinstance(kind, int) else at)
                seconds += time.perf_counter() - begun
            else:
                slowest = max(taken, default=0.0)
                expected = min(slowest * scale.events, scale.seconds + slowest * scale.batch)
                seconds += expected + slowest * scale.warm_up
        mb = max(loading.resident_mb, loading.bytes / 1e6, 0.0)
        return Pace(seconds / count, mb / count)

    def _record_loading(self, label: str, at: float | str, loading: Loading) -> None:
        self.record("build time", label, at, loading.adding, "s")
        self.record("encoding", label, at, loading.preparing, "s")
        self.record("memory", label, at, loading.bytes / 1e6, "MB", each=loading.bytes_each)
        self.record("resident memory", label, at, max(loading.resident_mb, 0.0), "MB")

    def _record_matching(self, subject: Subject, draw: DrawEvents, kind: str | int, at: float | str) -> None:
        scale, label = self.scale, subject.contender.label
        named = kind if isinstance(kind, str) and kind else None
        found: list[Keys] = []
        batches = draw(scale.warm_up, scale.warm_up + scale.events, batch=scale.batch)
        timing = subject.time(batches, scale.seconds, lambda matches: found.append(summary(matches)))
        self._agreement.check((self.experiment, at, named or ""), label, found)
        count = sum(part.shape[1] for part in found)
        self.record("matching time", label, at, timing.total, "µs", kind=named, events=count)
        self.record("matches", label, at, timing.matches, "an event", kind=named)
        encoding = subject.time_encoding(draw(0, scale.dicts, batch=scale.batch))
        if encoding is not None:
            self.record("encoding dicts", label, at, encoding * 1e6, "µs", kind=named)
