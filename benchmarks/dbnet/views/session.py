"""A run of the experiments: how families are filled, and what is timed while updates come."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from benchmarks.dbnet.views.inputs import Material
from benchmarks.dbnet.views.recomputation import check_family
from benchmarks.dbnet.views.scales import Scale
from benchmarks.runner.session import MatcherSession
from benchmarks.runner.subject import Contender
from tocsin.dissemination.scenarios.ranges import Ranges
from tocsin.dissemination.scenarios.recomputation import Recomputation, sampled
from tocsin.matching import IdArray
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.range_family import RangeFamily

LEAST: Final = "min"

_MANY: Final = 50_000  # subscriptions
_TARGETS: Final = {  # (experiment, measurement, contender, at): what one core is to reach
    ("reformulate", "time", "non-ignorable", 100_000): 5.0,
    ("reformulate", "time", "non-ignorable", 1_000_000): 8.0,
    ("notified", "notified", "many notified", 1_000_000): 10_000_000.0,
    ("notified", "updates", "at most one notified", 1_000_000): 50_000.0,
}
_TIMES_FASTER: Final = 100.0
_RIVALLED: Final = 100_000  # subscriptions, for which being so many times as fast is asked for


class Followed(Struct, frozen=True):
    """What following updates took, and what came of it."""

    updates: int
    notified: int
    seconds: float
    processor: float  # seconds of the processor; unlike the clock's, others do not add to them
    most: int  # subscriptions that one update notified

    @property
    def rate(self) -> float:
        """Return the updates a second."""
        return self.updates / max(self.seconds, 1e-9)


class Session(MatcherSession):
    """Fills families with points and ranges, and records what updates cost them."""

    def __init__(
        self,
        scale: Scale,
        material: Material,
        matchers: Sequence[str] = (),
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(matchers, progress)
        self.scale = scale
        self.material = material

    def target(self, name: str, matcher: str, at: float | str) -> float | None:
        """Return what one core is to reach, or None."""
        if name == "times as fast" and self.scale.compared >= _RIVALLED:
            return _TIMES_FASTER
        return _TARGETS.get((self._experiment, name, matcher, at))  # type: ignore[arg-type]

    def called(self, label: str) -> Contender:
        """Return a contender by what it is called in tables."""
        return Contender(label, "")

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
            gc.collect()  # what was measured before took memory that is needed
        self.tell(self.called(kind), f"{len(points[0]):,} rows, {len(ranges):,} subscriptions")
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
    ) -> tuple[Recomputation, IdArray]:
        """Let a family follow changes that are recomputed; return what recomputes them, and for which subscriptions.

        Raise `MatcherError` if anybody is told something else.
        """
        now, numbers = Recomputation(kind, *points), sampled(len(ranges), self.scale.sample)
        check_family(family, now, ranges, changes, numbers)
        return now, numbers


def follow(family: RangeFamily, batches: Iterable[PointChanges], budget: float) -> Followed:
    """Let a family follow updates, as many batches as the time allows."""
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
    return Followed(updates, notified, seconds, processor, most)
