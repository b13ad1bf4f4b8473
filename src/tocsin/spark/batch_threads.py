"""Record batches on several threads of one worker: kernels hold no lock of Python's, so they run side by side."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

Batch = TypeVar("Batch")
Out = TypeVar("Out")
Tool = TypeVar("Tool")


def in_threads(
    work: Callable[[Tool, Batch], Iterable[Out]], batches: Iterable[Batch], tools: Sequence[Tool]
) -> Iterator[Out]:
    """Yield the results of all batches in their order, from as many threads as there are tools.

    A tool is used by one thread at a time. Batches are read in the caller's thread, one more than there are threads
    ahead of the results at most. With a single tool, everything happens in the caller's thread, one batch after another.
    """
    if len(tools) == 1:
        for batch in batches:
            yield from work(tools[0], batch)
        return
    free: SimpleQueue[Tool] = SimpleQueue()
    for one in tools:
        free.put(one)

    def run(batch: Batch) -> list[Out]:
        tool = free.get()
        try:
            return list(work(tool, batch))
        finally:
            free.put(tool)

    pending: deque[Future[list[Out]]] = deque()
    pool = ThreadPoolExecutor(len(tools), thread_name_prefix="tocsin-match")
    try:
        for batch in batches:
            pending.append(pool.submit(run, batch))
            while len(pending) > len(tools) or (pending and pending[0].done()):
                yield from pending.popleft().result()
        while pending:
            yield from pending.popleft().result()
    finally:  # also if the caller needs no more
        pool.shutdown(wait=True, cancel_futures=True)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
