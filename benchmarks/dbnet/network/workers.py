"""The workers that run tasks: this process, one by one, or Spark's, several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar
from uuid import uuid4
from zipfile import ZipFile

from msgspec import Struct

import benchmarks
from benchmarks.dbnet.network.tasks import Done, Task, perform
from benchmarks.spark.process import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RunTasks: TypeAlias = "Callable[[Sequence[Task], Callable[[str], None]], Iterator[Done]]"
"""Runs tasks in any order, and shows progress."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_TAG: Final = "tocsin-tasks"
_PER_CORE: Final = 3  # groups, so that a long one at the end leaves few cores idle


def one_by_one(tasks: Sequence[Task], tell: Callable[[str], None]) -> Iterator[Done]:
    """Run the tasks here, in the order of their scenarios."""
    ordered = [task for group in _by_scenario(tasks) for task in group]
    for number, task in enumerate(ordered, 1):
        tell(f"{number} of {len(ordered)}: {task.called}")
        yield perform(task)


def on_spark(session: SparkSession) -> RunTasks:
    """Return the runner of tasks on a session's workers; the longest groups go first."""

    def run_tasks(tasks: Sequence[Task], tell: Callable[[str], None]) -> Iterator[Done]:
        ship_benchmarks(session)
        groups = grouped(tasks, session.sparkContext.defaultParallelism)
        tell(f"{len(tasks)} simulations in {len(groups)} groups")
        done = 0
        for ended in run_groups(session, perform, groups):
            group = groups[ended.group]
            done += len(group)
            tell(f"{done} of {len(tasks)} done, the last: {group[-1].called}")
            lines = [line for line in ended.fault.splitlines() if line.strip()] or ["no reason given"]
            failed = [Done(task, fault=f"Spark: {lines[0]}", trace=ended.fault) for task in group]
            yield from failed if ended.fault else ended.answers

    return run_tasks


class GroupResult(Struct, Generic[Answer], frozen=True):
    """The result of a group: an answer for each of its items, or the reason why it failed."""

    group: int  # its position among the groups
    answers: Sequence[Answer] = ()
    fault: str = ""


def run_groups(
    session: SparkSession, function: Callable[[Item], Answer], groups: Sequence[Sequence[Item]]
) -> Iterator[GroupResult[Answer]]:
    """Call a function with each item on Spark's workers, and return the groups in the order in which they end.

    The items of a group go one after another to one worker. Each group is a job of its own: a failure in one, even of a
    worker, ends no other.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415 - Spark is an optional part
    from pyspark.errors import PySparkException  # noqa: PLC0415

    context, tag = session.sparkContext, f"{_TAG}-{uuid4().hex}"

    def run_group(place: int, group: Sequence[Item]) -> GroupResult[Answer]:
        context.addJobTag(tag)
        try:
            return GroupResult(place, context.parallelize(list(group), 1).map(function).collect())
        except (PySparkException, Py4JError) as fault:
            return GroupResult(place, fault=str(fault))

    # As many jobs at once as there are cores keep all of them busy.
    pool = ThreadPoolExecutor(max_workers=max(context.defaultParallelism, 1), thread_name_prefix=_TAG)
    try:
        jobs = [pool.submit(run_group, place, group) for place, group in enumerate(groups)]
        for job in as_completed(jobs):
            yield job.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        context.cancelJobsWithTag(tag)  # cancels the jobs that are still running
        pool.shutdown(wait=True)


def ship_benchmarks(session: SparkSession) -> None:
    """Send this package to a cluster's workers, where only Tocsin is installed; local workers share the import path."""
    if not (session.sparkContext.master or "").startswith("local"):
        session.sparkContext.addPyFile(str(package_archive()))


def package_archive() -> Path:
    """Return a new archive of the package `benchmarks` that Python can import from."""
    package = Path(benchmarks.__file__).parent
    archive = Path(mkdtemp(prefix="tocsin-bench-")) / "benchmarks.zip"
    with ZipFile(archive, "w") as file:
        for module in sorted(package.rglob("*.py")):
            file.write(module, module.relative_to(package.parent))
    return archive


def over_spark(master: str | None = None) -> RunTasks:
    """Return a runner of tasks that starts a session and stops it; raise `SparkError` if Spark is not installed."""
    require_spark()

    def run_tasks(tasks: Sequence[Task], tell: Callable[[str], None]) -> Iterator[Done]:
        from tocsin.spark.session import session  # noqa: PLC0415 - it brings Spark

        tell("starting Spark")
        started = session(master, name="tocsin-bench")
        try:
            yield from on_spark(started)(tasks, tell)
        finally:
            started.stop()

    return run_tasks


def grouped(tasks: Sequence[Task], cores: int) -> list[list[Task]]:
    """Return tasks in groups, the longest first; a group has one scenario.

    A scenario is drawn once for a group, so that a group is divided only where cores would be idle.
    """
    groups = sorted(_by_scenario(tasks), key=_length, reverse=True)
    while groups and len(groups) < _PER_CORE * cores and len(max(groups, key=len)) > 1:
        longest = max((group for group in groups if len(group) > 1), key=_length)
        groups.remove(longest)
        middle = len(longest) // 2
        groups = sorted([*groups, longest[:middle], longest[middle:]], key=_length, reverse=True)
    return groups


def _by_scenario(tasks: Sequence[Task]) -> list[list[Task]]:
    groups: dict[object, list[Task]] = {}
    for task in tasks:
        groups.setdefault(task.scenario, []).append(task)
    return list(groups.values())


def _length(group: Sequence[Task]) -> float:
    """Estimate how long a group takes: events are processed, and subscriptions are placed."""
    return sum(_events(task) + task.scenario.subscriptions / 10 for task in group)


def _events(task: Task) -> int:
    return task.scenario.stocks * task.scenario.steps if task.scenario.trace else task.scenario.events
