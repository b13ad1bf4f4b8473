"""The memory of the process and of its machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

_MACHINE: Final = Path("/proc/meminfo")
_GROUP: Final = Path("/sys/fs/cgroup")  # a container's, which may have less than its machine


def available_mb() -> float:
    """Return the memory that the process could still use, in MB; infinite where the system does not tell."""
    limits = [float("inf")]
    if _MACHINE.exists():
        line = next(line for line in _MACHINE.read_text().splitlines() if line.startswith("MemAvailable:"))
        limits.append(int(line.split()[1]) * 1024 / 1e6)
    limit, used = _GROUP / "memory.max", _GROUP / "memory.current"
    if limit.exists() and used.exists() and (most := limit.read_text().strip()) != "max":
        limits.append((int(most) - int(used.read_text())) / 1e6)
    return min(limits)


def give_back() -> None:
    """Return memory that was freed to the system, where the C library has a call for it.

    Arrays of a few MB that live for one call stay with the process otherwise: after a million subscriptions 70 MB.
    """
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


@cache
def _c_library() -> Any:
    """Return the C library that the process runs with; None where it cannot be loaded by name."""
    import ctypes  # noqa: PLC0415 - needed only after very many subscriptions

    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows loads no library without a name
        return None
