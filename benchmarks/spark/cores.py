"""One processor and two: events a second, and the processor time of each part of the work."""

from __future__ import annotations

import sys
from statistics import median
from typing import Final

from benchmarks.spark.process import SparkProcess, Timed
from benchmarks.spark.session import SparkBenchSession
from tocsin.model.errors import SparkError

_TRANSFER: Final = "only into Python and dropped"


def cores(session: SparkBenchSession) -> None:
    """Match the same events on one processor and on two, by one and by two tasks, by one thread and by two."""
    if not sys.platform.startswith("linux"):
        session.left_out.append("cores: processor times are read from /proc, which Linux has")
        return
    files, index = session.inputs.event_files, session.inputs.index().folder
    bound, one, two = session.bound(), session.one, session.two
    ways: dict[str, tuple[SparkProcess, int]] = {
        "1 processor, local[1]": (bound, 1),
        "2 processors, local[1]": (one, 1),
        "2 processors, local[1], 2 threads": (one, 2),
        "2 processors, local[2]": (two, 1),
    }
    runs: dict[str, list[Timed]] = {label: [] for label in (*ways, _TRANSFER)}
    for is_counted in session.rounds("processors"):
        found = {
            label: process.match(files, index, threads=count) for label, (process, count) in ways.items()
        }
        if len({run.rows for run in found.values()}) > 1:
            raise SparkError(f"different numbers of notifications were sent: {found}")
        found[_TRANSFER] = bound.ask("transferred", Timed, events=files)
        for label, run in found.items():
            if is_counted:
                runs[label].append(run)
    for label, counted in runs.items():
        _record(session, label, counted)


def _record(session: SparkBenchSession, label: str, runs: list[Timed]) -> None:
    """Record the events a second of a way, and what an event costs in each part."""
    events = session.scale.events
    size = {"subscriptions": session.scale.subscriptions}
    session.record_runs("events a second", label, [events / run.seconds for run in runs], "events/s", **size)
    parts = {part: [1e9 * run.processor[part] / events for run in runs] for part in runs[0].processor}
    for part, nanoseconds in parts.items():
        session.record_runs(part, label, nanoseconds, "ns", **size)
    whole = [1e9 * sum(run.processor.values()) / events for run in runs]
    session.record_runs("all parts", label, whole, "ns", **size)
    session.record_runs(
        "events a second of processor time", label, 1e9 / max(median(whole), 1.0), "events/s", **size
    )
