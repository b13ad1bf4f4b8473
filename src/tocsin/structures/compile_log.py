"""What is compiled in this process: a record of each kernel, and one line that tells whoever waits.

Compiling says so once in the log `tocsin`, at INFO. In a terminal or a notebook a line is shown while it lasts. Nothing is
said where compiled code is only loaded, and no line is shown where nobody waits.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, thread_time
from typing import Final, NamedTuple, TextIO

from tocsin.structures.background_compiler import compiler

_log = logging.getLogger("tocsin")
_BETWEEN: Final = 0.1  # seconds between two updates of the line
_WIDTH: Final = 20  # characters of its bar


class Compiled(NamedTuple):
    """A function that was compiled, for one signature."""

    name: str
    signature: str
    seconds: float  # of processor time, without the functions that it calls
    is_kernel: bool  # and not a helper


class _Progress:
    """The line, and what it is made of."""

    def __init__(self) -> None:
        self.depth = 0
        self.began = 0.0
        self.nested: list[float] = []
        self.drawn = 0
        self.last = 0.0
        self.total = 0  # functions, as far as is known
        self.names: set[str] = set()  # of those that are done


_records: Final[list[Compiled]] = []
_remaining: Final[list[Callable[[], int]]] = []
_progress: Final = _Progress()


def compiled() -> list[Compiled]:
    """Return all that this process has compiled so far, in the order in which it was finished."""
    return list(_records)


def count_remaining(count: Callable[[], int]) -> None:
    """Have the line show a total: `count` returns how many known functions have never been compiled on this machine."""
    _remaining.append(count)


@contextmanager
def compiling(name: str, signature: str, *, is_kernel: bool) -> Iterator[None]:
    """Record a function while it is compiled; Numba's lock lets one thread compile at a time."""
    if not _records and not _progress.depth:
        meanwhile = "; until then events take longer" if compiler.is_own_thread() else ""
        _log.info("compiling kernels, once on this machine: this takes up to half a minute%s", meanwhile)
    if not _progress.depth:
        _progress.began = monotonic()
        if _is_shown(sys.stderr):
            _progress.total = len(_progress.names) + sum(count() for count in _remaining)
    _progress.depth += 1
    _progress.nested.append(0.0)
    begin = thread_time()
    _draw(name)
    try:
        yield
    finally:
        seconds = thread_time() - begin
        own = seconds - _progress.nested.pop()
        if _progress.nested:
            _progress.nested[-1] += seconds
        _progress.depth -= 1
        _records.append(Compiled(name, signature, own, is_kernel))
        _progress.names.add(name)
        _log.debug("compiled %s in %.2f s", name, own)
        if not _progress.depth:
            _clear()


def _draw(name: str) -> None:
    """Show the line, or bring it up to date."""
    now, out = monotonic(), sys.stderr
    if now - _progress.last < _BETWEEN or not _is_shown(out):
        return
    _progress.last = now
    done = len(_progress.names)
    total = max(_progress.total, done + 1)
    full = done * _WIDTH // total
    bar = "#" * full + "-" * (_WIDTH - full)
    text = f"compiling, once on this machine: [{bar}] {done} of {total}, {name.rpartition('.')[2]}"[:78]
    out.write("\r" + text.ljust(_progress.drawn))
    out.flush()
    _progress.drawn = len(text)


def _clear() -> None:
    """Take the line away."""
    if _progress.drawn:
        sys.stderr.write("\r" + " " * _progress.drawn + "\r")
        sys.stderr.flush()
        _progress.drawn = 0


def _is_shown(out: TextIO | None) -> bool:
    """Tell whether the line is shown: somebody looks, and waits."""
    return not compiler.is_own_thread() and _is_watched(out)


def _is_watched(out: TextIO | None) -> bool:
    """Tell whether somebody looks at a stream: a terminal, or the output of a notebook's cell."""
    return out is not None and (out.isatty() or type(out).__module__.startswith("ipykernel."))
