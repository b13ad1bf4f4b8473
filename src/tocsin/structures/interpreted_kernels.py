"""Kernels as plain Python, for as long as they are compiled in the background and somebody waits for an answer.

A kernel is interpreted by a copy of its function that calls copies of its helpers. State is the same named tuples of the
same arrays for both, so that any call may be the first one of the compiled kernel. The suite runs kernels in this way too
(`NUMBA_DISABLE_JIT`). Numba asks Python what to call only where no compiled version fits: those that are compiled pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from tocsin.structures.answering import is_answering
from tocsin.structures.background_compiler import Job, compiler

_PACKAGE: Final = __name__.partition(".")[0]
_wrapping: Final[set[Any]] = set()  # helpers whose integers wrap around
_substitutes: Final[dict[Any, Any]] = {}  # by what only compiled code can call
_copies: Final[dict[Any, Callable[..., Any]]] = {}
_namespaces: Final[dict[int, dict[str, Any]]] = {}  # by the id of a module's own

# Interpreting slows the compiler down. Who has done it for as long as all kernels take to compile had better waited.
_PATIENCE: Final = 10.0  # seconds of processor time, for all kernels together


class _Interpreting:
    """What is interpreted in this process."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[Any, ...], Job] = {}  # by kernel and types of arguments
        self.spent = 0.0


_interpreting: Final = _Interpreting()


def callable_for(
    compiled: Any, compile_now: Callable[..., Any], is_kept: Callable[[Any], bool], *args: Any
) -> Callable[..., Any]:
    """Return what Numba is to call with these arguments, for which the kernel has no version yet.

    That is a compiled version, or the kernel as Python if the engine wants an answer first.
    """
    if compiler.is_own_thread():
        return compile_now(*args)
    if is_answering() and _interpreting.spent < _PATIENCE:
        types = tuple(map(compiled.typeof_pyval, args))
        job = _interpreting.jobs.get((compiled, types))
        if job is None and is_kept(types) and global_compiler_lock._lock.acquire(blocking=False):  # noqa: SLF001
            try:
                return compile_now(*args)  # it is only loaded
            finally:
                global_compiler_lock._lock.release()  # noqa: SLF001
        if job is None or (job.is_done and job.fault is None):  # the second: it was lost by a fork
            job = Job(compiled.py_func.__name__, lambda: compiled.compile(types), is_urgent=True)
            _interpreting.jobs[compiled, types] = job
            compiler.add(job)
        if job.fault is None:
            return _timed(interpreted(compiled))
    with compiler.paused():
        return compile_now(*args)


def _timed(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return an interpreted kernel that counts its time, and returns numbers as a compiled one does."""

    def run(*args: Any) -> Any:
        begin = thread_time()
        try:
            return _plain(kernel(*args))
        finally:
            _interpreting.spent += thread_time() - begin

    return run


def _plain(found: Any) -> Any:
    """Return NumPy's numbers as Python's: a kernel would be compiled anew for an argument of another type."""
    if isinstance(found, np.generic):
        return found.item()
    return tuple(map(_plain, found)) if type(found) is tuple else found


def wraps_around(compiled: Any) -> None:
    """Have the integers of a helper wrap around without a warning."""
    _wrapping.add(compiled)


def interpret_as(compiled: Any, substitute: Callable[..., Any]) -> None:
    """Have interpreted kernels call another function in place of one that only compiled code can call."""
    _substitutes[compiled] = substitute


def interpreted(compiled: Any) -> Callable[..., Any]:
    """Return a kernel or helper as a function of Python; it changes the same arrays and returns the same."""
    found = _copies.get(compiled)
    if found is None:
        function = compiled.py_func
        found = FunctionType(
            function.__code__,
            _namespace(function.__globals__),
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        if compiled in _wrapping:
            found = np.errstate(over="ignore")(found)
        _copies[compiled] = found
    return found


def _namespace(names: dict[str, Any]) -> dict[str, Any]:
    """Return a module's names, with copies of its kernels; modules may know each other."""
    found = _namespaces.get(id(names))
    if found is None:
        found = _namespaces[id(names)] = dict(names)
        for name, value in names.items():
            found[name] = _substitute(value)
    return found


def _substitute(value: Any) -> Any:
    """Return what an interpreted kernel uses in place of a value."""
    if isinstance(value, Dispatcher):
        return interpreted(value)
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == _PACKAGE:
        return _Module(value)
    try:
        return _substitutes.get(value, value)
    except TypeError:  # not hashable, and so no function
        return value


class _Module:
    """A module whose kernels are copies."""

    def __init__(self, module: ModuleType) -> None:
        self._names = module.__dict__

    def __getattr__(self, name: str) -> Any:
        try:
            return _namespace(self._names)[name]
        except KeyError:
            raise AttributeError(name) from None
