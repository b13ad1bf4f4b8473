"""How much memory the process has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

__all__ = ["resident_mb"]

_STATUS: Final = Path("/proc/self/status")


def resident_mb() -> float:
    """Return the process's resident memory in MB: what it is now on Linux, the most it ever was elsewhere."""
    if _STATUS.exists():
        found = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmRSS:"))
        return int(found.split()[1]) * 1024 / 1e6
    try:
        import resource  # noqa: PLC0415 - Unix only
    except ImportError:
        return float("nan")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most * 1024 / 1e6
