"""Groups of independent tasks run on Spark: bytes in, bytes out, results in the order of completion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from importlib import import_module
from typing import Final
from uuid import uuid4

from msgspec import Struct
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tocsin.model.errors import SparkError

_TAG: Final = "tocsin-tasks"


class GroupResult(Struct, frozen=True):
    """The result of a group: an answer for each payload, or the reason why it failed."""

    group: int  # its position among the groups
    answers: tuple[bytes, ...] = ()
    fault: str = ""


def run_groups(
    session: SparkSession, function: str, groups: Sequence[Sequence[bytes]]
) -> Iterator[GroupResult]:
    """Call a function with each payload on Spark's workers, and return the groups in the order in which they end.

    `function` names an importable function, as `package.module:name`, from bytes to bytes. The payloads of a group go
    one after another to one worker. Each group is a job of its own: a failure in one, even of a worker, ends no other. Raise `SparkError` if there is no such function.
    """
    _find(function)  # raises here, not on every worker
    context = session.sparkContext
    tag = f"{_TAG}-{uuid4().hex}"
    # As many jobs at once as there are cores keep all of them busy.
    pool = ThreadPoolExecutor(max_workers=max(context.defaultParallelism, 1), thread_name_prefix=_TAG)
    try:
        jobs = [
            pool.submit(_run_group, context, function, tag, place, group)
            for place, group in enumerate(groups)
        ]
        for job in as_completed(jobs):
            yield job.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        context.cancelJobsWithTag(tag)  # cancels the jobs that are still running
        pool.shutdown(wait=True)


def _run_group(
    context: SparkContext, function: str, tag: str, place: int, group: Sequence[bytes]
) -> GroupResult:
    """Run a group as a job, and return its answers or its fault."""
    context.addJobTag(tag)
    try:
        answers = context.parallelize(list(group), 1).mapPartitions(partial(_answers, function)).collect()
    except (PySparkException, Py4JError) as fault:
        return GroupResult(place, fault=str(fault))
    return GroupResult(place, tuple(answers))


def _answers(function: str, payloads: Iterator[bytes]) -> Iterator[bytes]:
    """Call the function, on a worker."""
    return map(_find(function), payloads)


def _find(function: str) -> Callable[[bytes], bytes]:
    module, _, name = function.partition(":")
    try:
        found: Callable[[bytes], bytes] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as fault:
        raise SparkError(
            f"there is no function {function} to be found as package.module:name ({fault})"
        ) from fault
    return found
