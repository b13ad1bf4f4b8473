"""Available memory."""

from __future__ import annotations

from pathlib import Path
from typing import Final

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
