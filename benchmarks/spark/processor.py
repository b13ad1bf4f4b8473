"""The processor time of a Spark process by its parts: Java's tasks, its compiler and collector, and Python's workers (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TASKS: Final = "Java, tasks"
COMPILER: Final = "Java, compiling"
COLLECTOR: Final = "Java, collecting"
WORKERS: Final = "Python, workers"

_TICK: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")
_USER: Final = 11  # the places of processor times in `stat`, counted behind the name: of the process, and of ended children
_COMPILING: Final = ("C1 Comp", "C2 Comp")
_COLLECTING: Final = ("GC Thread", "G1 ", "VM Thread")


def processor_seconds(process: int) -> dict[str, float]:
    """Return the seconds that the parts of a process with a Spark session have used so far; all 0 on other systems."""
    found = dict.fromkeys((TASKS, COMPILER, COLLECTOR, WORKERS), 0.0)
    for one in _descendants(process):
        name, fields = _stat(_PROC / str(one) / "stat")
        if name != "java":
            found[WORKERS] += _seconds(fields, ended=True)
            continue
        found[TASKS] += _seconds(fields)
        for thread in _threads(one):
            name, fields = _stat(thread / "stat")
            part = COMPILER if name.startswith(_COMPILING) else COLLECTOR
            if name.startswith((*_COMPILING, *_COLLECTING)):
                found[part] += _seconds(fields)
                found[TASKS] -= _seconds(fields)
    return found


def _descendants(process: int) -> Iterator[int]:
    """Yield the processes that a process has started, and theirs."""
    for thread in _threads(process):
        try:
            children = (thread / "children").read_text().split()
        except OSError:  # it has just ended
            continue
        for child in map(int, children):
            yield child
            yield from _descendants(child)


def _threads(process: int) -> list[Path]:
    try:
        return list((_PROC / str(process) / "task").iterdir())
    except OSError:
        return []


def _stat(file: Path) -> tuple[str, list[str]]:
    """Return the name of a process or a thread, and the fields behind it; none if it has just ended."""
    try:
        name, _, rest = file.read_text().partition("(")[2].rpartition(")")
    except OSError:
        return "", []
    return name, rest.split()


def _seconds(fields: list[str], *, ended: bool = False) -> float:
    if not fields:
        return 0.0
    return sum(map(int, fields[_USER : _USER + (4 if ended else 2)])) / _TICK
