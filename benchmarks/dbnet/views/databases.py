"""Range-min subscriptions beside databases with fitting indexes that ask again for the answers that may change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np
from msgspec import Struct

from benchmarks.dbnet.views.rivals import RIVALS, missing
from benchmarks.dbnet.views.session import Processed, ViewSession, process_updates
from tocsin.dissemination.scenarios.ranges import Ranges
from tocsin.dissemination.scenarios.walks import SPIKES, TablePoints, Updates, in_batches
from tocsin.matching import IdArray
from tocsin.model.errors import MatcherError
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.range_family import RangeFamily

_OURS: Final = "Tocsin"
_SPIKED: Final = 2 * SPIKES  # the share of updates that are a spike or its return
_ASKED: Final = {", all ranges around x": False, ", only answers that may change": True}
_LEAST: Final = 2  # updates, however long they take: a spike and its return

Changed = tuple[IdArray, Floats]
"""The subscriptions that an update changes, ascending, and their new answers."""


class _Times(Struct, frozen=True):
    """Seconds of an update, by its sort."""

    ordinary: float
    spikes: float
    counts: tuple[int, int]

    @property
    def average(self) -> float:
        """Return the seconds of an update of Table 1."""
        return (1 - _SPIKED) * self.ordinary + _SPIKED * self.spikes


def databases(session: ViewSession) -> None:
    """Follow the same updates in databases; they must tell the same.

    Spikes take a database seconds each, so that few updates fit into the time: spikes and others are measured apart, and
    weighed as Table 1 has them.
    """
    for rows in session.scale.rivalled:
        points, ordinary = session.updates(rows, spikes=0.0)
        _, spikes = session.updates(rows, spikes=0.5)
        ranges = session.ranges(session.scale.compared)
        batched = _batched(session, points, ranges, (spikes, ordinary))
        _record(session, _OURS, rows, batched)
        family = session.family((points.x, points.y), ranges)
        begun = family.server.present(ranges.lows, ranges.highs)["value"]
        alone, told = _replayed(session, (spikes, ordinary), _by_family(family))
        _record(session, f"{_OURS}, one by one", rows, alone)
        for name, (package, make) in RIVALS.items():
            if (reason := missing(package)) is not None:
                session.left_out.append(f"databases: {name}: {reason}")
                continue
            for variant, filtered in _ASKED.items():
                label = f"{name}{variant}"
                session.tell(label, f"{rows:,} rows")
                rival = make(points, ranges, begun, filtered=filtered)
                found, changed = _replayed(session, (spikes, ordinary), rival.update)
                rival.close()
                _check(label, told, changed)
                _record(session, label, rows, found)
                for what, ours in (("times as fast", batched), ("times as fast, one by one", alone)):
                    session.record(what, label, rows, found.average / ours.average, "times")


def _batched(
    session: ViewSession, points: TablePoints, ranges: Ranges, given: tuple[Updates, Updates]
) -> _Times:
    """Return Tocsin's seconds of updates in batches."""
    held, (spikes, ordinary) = (points.x, points.y), given
    family, scale = session.family(held, ranges), session.scale
    session.check(family, held, ranges, spikes.take(0, 2).changes)
    many = process_updates(family, in_batches(spikes.changes, scale.crowded, 2), scale.seconds)
    if many.updates % 2:
        raise MatcherError("a spike was not restored; let the batches be of an even size")
    few = process_updates(family, in_batches(ordinary.changes, scale.batch), scale.seconds)
    return _Times(_each(few), _each(many), (few.updates, many.updates))


def _each(done: Processed) -> float:
    return done.seconds / max(done.updates, 1)


def _by_family(family: RangeFamily) -> Callable[[int, float, float, float], Changed]:
    """Return a function that processes one update, as a rival does."""

    def update(_: int, x: float, old: float, new: float) -> Changed:
        at = np.array([x])
        told = family.change_points(PointChanges(at, np.array([old]), at, np.array([new])))
        return told.numbers, told.new

    return update


def _replayed(
    session: ViewSession,
    given: tuple[Updates, Updates],
    update: Callable[[int, float, float, float], Changed],
) -> tuple[_Times, tuple[list[Changed], list[Changed]]]:
    """Return the seconds of updates one by one, and their changed answers: spikes first, which restore every value."""
    times, changed = [], []
    for updates in given:
        seconds, found = 0.0, list[Changed]()
        columns = (updates.rows, updates.x, updates.old_y, updates.new_y)
        for one in zip(*(column[: session.scale.single].tolist() for column in columns), strict=True):
            begun = time.perf_counter()
            numbers, answers = update(*one)
            seconds += time.perf_counter() - begun
            order = np.argsort(numbers)
            found.append((numbers[order], answers[order]))
            if seconds > session.scale.seconds and len(found) >= _LEAST and len(found) % 2 == 0:
                break
        times.append(seconds / len(found))
        changed.append(found)
    spikes, ordinary = changed
    return _Times(times[1], times[0], (len(ordinary), len(spikes))), (spikes, ordinary)


def _check(
    label: str, ours: tuple[list[Changed], list[Changed]], theirs: tuple[list[Changed], list[Changed]]
) -> None:
    """Raise `MatcherError` if a database changed other answers at an update that both were given."""
    for sort, one, two in zip(("spikes", "ordinary updates"), ours, theirs, strict=True):
        for place, (mine, other) in enumerate(zip(one, two, strict=False)):
            if not all(map(np.array_equal, mine, other)):
                raise MatcherError(
                    f"`{_OURS}` and `{label}` disagree on update {place} of the {sort}:"
                    f" they change {len(mine[0]):,} and {len(other[0]):,} answers"
                )


def _record(session: ViewSession, label: str, rows: int, times: _Times) -> None:
    for name, seconds, count in (
        ("ordinary", times.ordinary, times.counts[0]),
        ("spikes", times.spikes, times.counts[1]),
    ):
        session.record(name, label, rows, seconds * 1e6, "us an update", updates=float(count))
    session.record("average", label, rows, times.average * 1e6, "us an update")
