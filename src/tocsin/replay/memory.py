"""The memory of this process."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Final

from tocsin.structures.memory import available_mb

__all__ = ["available_mb", "give_back", "resident_mb"]

_STATUS: Final = Path("/proc/self/status")


def resident_mb() -> float:
    """Return the process's resident memory in MB: the present one on Linux, the maximum elsewhere."""
    if _STATUS.exists():
        found = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(found.split()[1]) * 1024 / 1e6
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return float("nan")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6


def give_back() -> None:
    """Return unused memory to the system, where the C library can, so that growth can be measured."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
        if trim is not None:
            trim(0)
