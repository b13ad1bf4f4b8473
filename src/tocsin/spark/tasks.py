"""Independent pieces of work, spread over Spark: bytes in, bytes out, and told as they end."""

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


class Ended(Struct, frozen=True):
    """A group of work that has ended: an answer for each payload, or why there are none."""

    group: int  # its place among those that were given
    answers: tuple[bytes, ...] = ()
    fault: str = ""


def spread(session: SparkSession, function: str, groups: Sequence[Sequence[bytes]]) -> Iterator[Ended]:
    """Call a function with each payload on Spark's workers, and return the groups in the order in which they end.

    `function` is the name of an importable one, as `package.module:name`, which takes bytes and returns bytes. The
    payloads of a group go one after another to one worker. Each group is a job of its own: what goes wrong with one,
    were it a worker that dies, ends no other. Raise `SparkError` if there is no such function.
    """
    _found(function)  # told here, not by every worker
    context = session.sparkContext
    tag = f"{_TAG}-{uuid4().hex}"
    # As many jobs at once as there are cores keep all busy; which group is next is decided when one is free.
    pool = ThreadPoolExecutor(max_workers=max(context.defaultParallelism, 1), thread_name_prefix=_TAG)
    try:
        jobs = [
            pool.submit(_ended, context, function, tag, place, group) for place, group in enumerate(groups)
        ]
        for job in as_completed(jobs):
            yield job.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        context.cancelJobsWithTag(tag)  # of those that nobody waits for any more
        pool.shutdown(wait=True)


def _ended(context: SparkContext, function: str, tag: str, place: int, group: Sequence[bytes]) -> Ended:
    """Run a group as a job, and return its answers or its fault."""
    context.addJobTag(tag)
    try:
        answers = context.parallelize(list(group), 1).mapPartitions(partial(_answers, function)).collect()
    except (PySparkException, Py4JError) as fault:
        return Ended(place, fault=str(fault))
    return Ended(place, tuple(answers))


def _answers(function: str, payloads: Iterator[bytes]) -> Iterator[bytes]:
    """Call the function, on a worker."""
    return map(_found(function), payloads)


def _found(function: str) -> Callable[[bytes], bytes]:
    module, _, name = function.partition(":")
    try:
        found: Callable[[bytes], bytes] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as fault:
        raise SparkError(
            f"there is no function {function} to be found as package.module:name ({fault})"
        ) from fault
    return found
