"""One thread that compiles while others work, and gives way to whoever has to wait for the compiler.

Numba compiles in one thread at a time. A job of this thread is broken off between two functions when a foreground call needs
the compiler, when the process forks, and when it ends. It is taken up again later; functions that are done stay compiled.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Event, RLock, Thread, get_ident
from typing import Final

from numba.core.compiler_lock import global_compiler_lock

_log = logging.getLogger("tocsin")
_LONGEST: Final = 10.0  # seconds that the end of the process waits; no function takes so long


class _BrokenOff(BaseException):
    """A job gives way; neither Numba nor a job takes it for a fault."""


class Job:
    """Something to be compiled in the background."""

    def __init__(self, name: str, run: Callable[[], object], *, is_urgent: bool) -> None:
        self.name = name
        self.run = run
        self.is_urgent = is_urgent
        self.fault: Exception | None = None
        self._done = Event()

    @property
    def is_done(self) -> bool:
        """Tell whether it has ended, well or not."""
        return self._done.is_set()

    def wait(self) -> None:
        """Return when it has ended."""
        self._done.wait()

    def end(self, fault: Exception | None = None) -> None:
        """Record that it has ended."""
        self.fault = fault
        self._done.set()


class _BackgroundCompiler:
    """The jobs and their thread, which lives while there are any."""

    def __init__(self) -> None:
        self._changed = Condition(RLock())
        self._jobs: deque[Job] = deque()
        self._current: Job | None = None
        self._thread: Thread | None = None
        self._waiting = 0  # calls that wait for the compiler
        self._ends = False
        self._is_held = False  # Numba's lock, by a fork

    def add(self, job: Job) -> None:
        """Add a job; an urgent one comes before those that are not, even if one of these has begun."""
        with self._changed:
            urgent = sum(one.is_urgent for one in self._jobs)
            self._jobs.insert(urgent if job.is_urgent else len(self._jobs), job)
            if self._thread is None and not self._ends:
                self._thread = Thread(target=self._work, name="tocsin-compiler", daemon=True)
                self._thread.start()

    def is_own_thread(self) -> bool:
        """Tell whether this is the thread that compiles in the background."""
        thread = self._thread
        return thread is not None and thread.ident == get_ident()

    def give_way(self) -> None:
        """Break the current job off if somebody waits; called between functions, does nothing in other threads."""
        if self.is_own_thread():
            with self._changed:
                current = self._current
                is_overtaken = (
                    current is not None
                    and not current.is_urgent
                    and bool(self._jobs)
                    and self._jobs[0].is_urgent
                )
                if self._waiting or self._ends or is_overtaken:
                    raise _BrokenOff

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Have the thread give way for as long as somebody waits for the compiler."""
        with self._changed:
            self._waiting += 1
        try:
            yield
        finally:
            with self._changed:
                self._waiting -= 1
                self._changed.notify_all()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            fault: Exception | None = None
            try:
                job.run()
            except _BrokenOff:
                with self._changed:
                    self._current = None
                    urgent = sum(one.is_urgent for one in self._jobs)
                    self._jobs.insert(0 if job.is_urgent else urgent, job)
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, the foreground tries again and reports it
                _log.warning("compiling %s in the background failed: %s", job.name, error)
                fault = error
            job.end(fault)

    def _next(self) -> Job | None:
        """Return the next job when nobody waits for the compiler; None when there is none, which ends the thread."""
        with self._changed:
            self._current = None
            self._changed.wait_for(lambda: not self._waiting or self._ends)
            if self._ends or not self._jobs:
                self._thread = None
                return None
            self._current = self._jobs.popleft()
            return self._current

    def end(self) -> None:
        """Break off and end: a thread in the middle of LLVM must not outlive the interpreter."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(_LONGEST)

    # A child of a fork has this thread's memory and not the thread: nothing may be half compiled in it.

    def before_fork(self) -> None:
        """Have the thread stop between two functions."""
        with self._changed:
            self._waiting += 1
            self._is_held = self._thread is not None
        if self._is_held:
            global_compiler_lock.acquire()
        self._changed.acquire()

    def after_fork(self) -> None:
        """Go on, in the parent."""
        self._waiting -= 1
        self._changed.notify_all()
        self._changed.release()
        if self._is_held:
            global_compiler_lock.release()

    def after_fork_in_child(self) -> None:
        """Forget the thread and end its jobs: whoever needs one asks again."""
        jobs = self._jobs
        self.after_fork()
        self.__init__()  # its locks know threads that are not here
        for job in jobs:
            job.end()


compiler: Final = _BackgroundCompiler()
atexit.register(compiler.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=compiler.before_fork,
        after_in_parent=compiler.after_fork,
        after_in_child=compiler.after_fork_in_child,
    )
