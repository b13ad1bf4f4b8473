"""A run of the experiments: how families of views are filled, checked against recomputed answers, and timed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.runner.session import STARTING, MatcherSession, Progress, Targets, find_data, origins, silent
from tocsin.dissemination.scenarios.answer_oracle import (
    AlteredAnswer,
    Recomputation,
    first_difference,
    is_same,
    sample_numbers,
    sampled_changes,
)
from tocsin.dissemination.scenarios.quotes import Trace, make_trace, read_quotes
from tocsin.dissemination.scenarios.ranges import Ranges, draw_ranges
from tocsin.dissemination.scenarios.walks import SPIKES, TablePoints, Updates, draw_points, draw_updates
from tocsin.matching import IdArray
from tocsin.model.errors import MatcherError
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.range_family import RangeFamily

LEAST: Final = "min"
QUOTES: Final = {"quotes": "stock_quotes.jsonl.gz"}
ADVICE: Final = "leave out --data, and the quotes are made up"

_MANY: Final = 50_000  # subscriptions
_TRIED: Final = {  # sizes with which everything is used once
    "reformulated": (100,),
    "database": (100,),
    "heard": 200,
    "subscriptions": (200,),
    "few_rows": 100,
    "rows": 100,
    "notified": 200,
    "compared": 100,
    "rivalled": (50,),
    "stocks": 20,
    "steps": 5,
    "updates": 200,
    "seconds": 0.1,
    "single": 10,
    "checked": 20,
}


class Processed(Struct, frozen=True):
    """The cost and the effect of processed updates."""

    updates: int
    notified: int
    seconds: float
    processor: float  # seconds of the processor; unlike the clock's, others do not add to them
    most: int  # subscriptions that one update notified

    @property
    def rate(self) -> float:
        """Return the updates a second."""
        return self.updates / max(self.seconds, 1e-9)


class ViewSession(MatcherSession):
    """Fills families with points and ranges, and records the cost of updates; equal inputs are drawn once."""

    paper = ("points", "be-tree", "opindex", "dynamic", "counting")
    targets: ClassVar[Targets] = {
        ("reformulate", "time", "non-ignorable", 100_000): 5.0,
        ("reformulate", "time", "non-ignorable", 1_000_000): 8.0,
        ("notified", "notified", "many notified", 1_000_000): 10_000_000.0,
        ("notified", "updates", "at most one notified", 1_000_000): 50_000.0,
        ("databases", "times as fast", "", ""): 100.0,
    }

    def __init__(
        self,
        scale: Any,
        matcher: Sequence[str] = (),
        *,
        data: Path | None = None,
        progress: Progress = silent,
    ) -> None:
        super().__init__(scale, matcher, progress=progress)
        self.files = find_data(QUOTES, data, ADVICE)
        self._points = lru_cache(maxsize=2)(draw_points)
        self._updates = lru_cache(maxsize=2)(self._draw_updates)
        self._ranges = lru_cache(maxsize=1)(draw_ranges)

    def compile(self, measures: Sequence[Callable[[Any], None]]) -> None:
        """Run the experiments once with tiny sizes, so that nothing is compiled while it is timed."""
        names = [contender.matcher for contender in self.contenders]
        tiny = ViewSession(replace(self.scale, name="tried", **_TRIED), names, progress=self.progress)
        tiny.begin(STARTING)
        for measure in measures:
            measure(tiny)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names, with where the quotes come from."""
        return {**super().parameters(), **origins(self.files)}

    def updates(
        self, rows: int, *, spikes: float = SPIKES, ignorable: float | None = 0.0
    ) -> tuple[TablePoints, Updates]:
        """Return points, and updates of them."""
        return self._points(rows), self._updates(rows, spikes, ignorable)

    def _draw_updates(self, rows: int, spikes: float, ignorable: float | None) -> Updates:
        return draw_updates(self._points(rows), self.scale.updates, spikes=spikes, ignorable=ignorable)

    def ranges(self, count: int) -> Ranges:
        """Return ranges; fewer ranges are the first of more."""
        most = max(self.scale.notified, self.scale.heard, *self.scale.subscriptions)
        return self._ranges(most).first(count)

    @cached_property
    def quotes(self) -> Trace:
        """Return the quotes of stocks."""
        path = self.files["quotes"]
        return make_trace(self.scale.stocks, self.scale.steps) if path is None else read_quotes(path)

    def record_rates(
        self, label: str, at: int, done: Processed, unit: str = "subscriptions/s", **details: float
    ) -> None:
        """Keep the updates and the notifications a second, and the notifications of an update."""
        count = float(done.updates)
        self.record("updates", label, at, done.rate, "updates/s", updates=count, **details)
        each_second = done.notified / max(done.seconds, 1e-9)
        self.record("notified", label, at, each_second, unit, most=float(done.most) or None)
        self.record("notified by one", label, at, done.notified / max(done.updates, 1), "an update")

    def family(
        self,
        points: tuple[Floats, Floats],
        ranges: Ranges,
        *,
        kind: str = LEAST,
        matcher: str | None = None,
        adding: bool = True,
    ) -> RangeFamily:
        """Return a family with points and, if `adding`, with subscriptions."""
        if len(ranges) > _MANY:
            gc.collect()  # the memory of the measurements before is needed
        self.tell(kind, f"{len(points[0]):,} rows, {len(ranges):,} subscriptions")
        family = RangeFamily(kind, matcher)
        family.load_points(*points)
        if adding:
            family.add_ranges(ranges.numbers, ranges.lows, ranges.highs)
        return family

    def check(
        self,
        family: RangeFamily,
        points: tuple[Floats, Floats],
        ranges: Ranges,
        changes: PointChanges,
        *,
        kind: str = LEAST,
    ) -> None:
        """Process changes that are also recomputed; raise `MatcherError` if an answer changes otherwise."""
        now = Recomputation(kind, *points, ranges.lows, ranges.highs)
        check_family(family, now, changes, sample_numbers(len(ranges), self.scale.sample))

    def check_answers(
        self, answer: Callable[[int], Any], points: TablePoints, ranges: Ranges, whose: str = ""
    ) -> None:
        """Raise `MatcherError` if answers of some subscriptions to the least y differ from the recomputed ones."""
        now = Recomputation(LEAST, points.x, points.y, ranges.lows, ranges.highs)
        check_answers(answer, now, sample_numbers(len(ranges), self.scale.sample), whose)


def process_updates(family: RangeFamily, batches: Iterable[PointChanges], budget: float) -> Processed:
    """Process updates, as many batches as the time allows."""
    updates = notified = most = 0
    seconds = processor = 0.0
    for changes in batches:
        before = time.process_time()
        begun = time.perf_counter()
        told = family.change_points(changes)
        seconds += time.perf_counter() - begun
        processor += time.process_time() - before
        updates += len(changes)
        notified += len(told)
        if len(told):
            most = max(most, int(np.bincount(told.rows).max()))
        if seconds > budget:
            break
    return Processed(updates, notified, seconds, processor, most)


def check_family(family: RangeFamily, now: Recomputation, changes: PointChanges, numbers: IdArray) -> None:
    """Apply changes to a family; raise `MatcherError` if some subscriptions' answers change otherwise than expected."""
    expected = now.apply_changes(changes, numbers)
    told = sampled_changes(family.change_points(changes), numbers)
    pairs = zip_longest(expected, told)
    wrong = next((pair for pair in pairs if None in pair or not _is_expected(*pair)), None)
    if wrong is not None:
        shown = [None if one is None else tuple(one) for one in wrong]
        raise MatcherError(
            f"recomputing gives {len(expected):,} changes of {len(numbers):,} answers, {len(told):,} were reported;"
            f" the first that differs is {shown[1]}, and should be {shown[0]} (change, subscription, old, new)"
        )


def check_answers(
    answer: Callable[[int], Any], now: Recomputation, numbers: IdArray, whose: str = ""
) -> None:
    """Raise `MatcherError` if some subscriptions' answers differ from the recomputed ones; `whose` names who answers."""
    if wrong := first_difference(answer, {number: now.answer(number) for number in numbers.tolist()}):
        number, found, meant = wrong
        of = f"subscription {number}"
        told = f"{whose} answers {found} to {of}" if whose else f"{of} has {found}"
        raise MatcherError(f"{told}, and recomputing gives {meant}")


def _is_expected(one: AlteredAnswer, two: AlteredAnswer) -> bool:
    return one[:2] == two[:2] and is_same(one.old, two.old) and is_same(one.new, two.new)
