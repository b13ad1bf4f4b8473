"""Who does the tasks: this process, one by one, or Spark's workers, several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from benchmarks.dbnet.network.tasks import PERFORM, Done, Task, decoded, encoded, perform
from benchmarks.spark.process import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Doing: TypeAlias = "Callable[[Sequence[Task], Callable[[str], None]], Iterator[Done]]"
"""Does tasks in any order, and tells how far it is."""

_PER_CORE: Final = 3  # groups, so that a long one at the end leaves few cores idle


def one_by_one(tasks: Sequence[Task], tell: Callable[[str], None]) -> Iterator[Done]:
    """Do the tasks here, in the order of their scenarios."""
    ordered = [task for group in _by_scenario(tasks) for task in group]
    for number, task in enumerate(ordered, 1):
        tell(f"{number} of {len(ordered)}: {task.called}")
        yield perform(task)


def on_spark(session: SparkSession) -> Doing:
    """Return what spreads tasks over a session's workers; the longest groups go first."""

    def doing(tasks: Sequence[Task], tell: Callable[[str], None]) -> Iterator[Done]:
        from tocsin.spark.tasks import spread  # noqa: PLC0415 - it brings Spark

        groups = grouped(tasks, session.sparkContext.defaultParallelism)
        tell(f"{len(tasks)} simulations in {len(groups)} groups")
        done = 0
        for ended in spread(session, PERFORM, [[encoded(task) for task in group] for group in groups]):
            group = groups[ended.group]
            done += len(group)
            tell(f"{done} of {len(tasks)} done, the last: {group[-1].called}")
            if ended.fault:
                reason = "Spark: " + next(
                    (line for line in ended.fault.splitlines() if line.strip()), "no reason given"
                )
                yield from (Done(task, fault=reason, trace=ended.fault) for task in group)
            else:
                yield from (decoded(answer, Done) for answer in ended.answers)

    return doing


def over_spark(master: str | None = None) -> Doing:
    """Return what starts a session for the tasks, and stops it; raise `SparkError` now if Spark is not installed."""
    require_spark()

    def doing(tasks: Sequence[Task], tell: Callable[[str], None]) -> Iterator[Done]:
        from tocsin.spark.session import session  # noqa: PLC0415 - it brings Spark

        tell("starting Spark")
        started = session(master, name="tocsin-bench")
        try:
            yield from on_spark(started)(tasks, tell)
        finally:
            started.stop()

    return doing


def grouped(tasks: Sequence[Task], cores: int) -> list[list[Task]]:
    """Return tasks in groups, long ones first: those of one scenario together, unless there are too few groups then.

    What is drawn for a scenario is drawn once for a group, so that a group is only divided where cores would be idle.
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
    """Return about how long a group takes: events are followed, and subscriptions are placed."""
    return sum(_events(task) + task.scenario.subscriptions / 10 for task in group)


def _events(task: Task) -> int:
    return task.scenario.stocks * task.scenario.steps if task.scenario.trace else task.scenario.events
