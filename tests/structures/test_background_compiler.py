"""Jobs of the background thread: they give way, are taken up again, and survive a fork of the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from threading import Event

import pytest
from numba.core.compiler_lock import global_compiler_lock

from tocsin.structures.background_compiler import Job, _BackgroundCompiler

pytestmark = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")


@pytest.fixture
def compiler() -> Iterator[_BackgroundCompiler]:
    made = _BackgroundCompiler()
    yield made
    made.end()


def slow_job(compiler: _BackgroundCompiler, begun: Event, *, is_urgent: bool) -> Job:
    """Return a job that goes on until it is broken off, and ends when it is taken up again.

    Like Numba, it has the compiler's lock meanwhile: whoever waits for that waits until the job is broken off.
    """
    runs: list[int] = []

    def run() -> None:
        runs.append(1)
        with global_compiler_lock:
            while len(runs) == 1:
                begun.set()
                compiler.give_way()

    return Job("slow", run, is_urgent=is_urgent)


def test_a_job_gives_way_while_somebody_waits(compiler: _BackgroundCompiler) -> None:
    begun = Event()
    job = slow_job(compiler, begun, is_urgent=True)
    compiler.add(job)
    begun.wait()
    with compiler.paused(), global_compiler_lock:
        assert not job.is_done
    job.wait()
    assert job.fault is None


def test_an_urgent_job_overtakes_one_that_is_not(compiler: _BackgroundCompiler) -> None:
    begun, order = Event(), []
    slow = slow_job(compiler, begun, is_urgent=False)
    last = Job("last", lambda: order.append("last"), is_urgent=False)
    compiler.add(slow)
    begun.wait()
    compiler.add(last)
    compiler.add(Job("urgent", lambda: order.append(f"urgent {slow.is_done}"), is_urgent=True))
    last.wait()
    assert order == ["urgent False", "last"]
    assert slow.is_done


def test_a_job_that_fails_is_reported(
    compiler: _BackgroundCompiler, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("no such type")

    job = Job("broken", fail, is_urgent=True)
    compiler.add(job)
    job.wait()
    assert isinstance(job.fault, ValueError)
    assert "compiling broken in the background failed: no such type" in caplog.text


def test_the_end_breaks_a_job_off(compiler: _BackgroundCompiler) -> None:
    begun = Event()
    job = slow_job(compiler, begun, is_urgent=True)
    compiler.add(job)
    begun.wait()
    compiler.end()
    assert compiler._thread is None
    assert not job.is_done


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
def test_a_fork_waits_for_a_break_and_leaves_the_job_to_the_parent(compiler: _BackgroundCompiler) -> None:
    begun = Event()
    job = slow_job(compiler, begun, is_urgent=True)
    compiler.add(job)
    begun.wait()
    compiler.before_fork()  # as a fork does, in both processes
    child = os.fork()
    if not child:
        compiler.after_fork_in_child()
        os._exit(0 if job.is_done and compiler._thread is None else 1)
    compiler.after_fork()
    job.wait()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
