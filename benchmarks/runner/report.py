"""What a benchmark reports, and how it is timed."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from tocsin import __version__


class Measurement(Struct, frozen=True):
    """One line of a report: what was measured, the figure, its unit and, where there is one, the target."""

    name: str
    value: float
    unit: str
    target: float | None = None
    details: Mapping[str, float | str] = {}


class Report(Struct, frozen=True):
    """A benchmark's measurements, with what they were taken on."""

    benchmark: str
    measurements: tuple[Measurement, ...]
    parameters: Mapping[str, float | str]
    machine: Mapping[str, float | str]

    @classmethod
    def of(cls, benchmark: str, measurements: list[Measurement], **parameters: float | str) -> Report:
        """Return the report of a run on this machine."""
        machine: dict[str, float | str] = {
            "tocsin": __version__,
            "python": platform.python_version(),
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count() or 1,
        }
        return cls(benchmark, tuple(measurements), parameters, machine)

    def write(self, path: Path) -> None:
        """Write the report as JSON."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")


def rate(work: Callable[[], object], count: int, *, repeats: int = 5) -> tuple[float, float]:
    """Return how many of `count` things `work` does a second: the best and the median of several runs."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return count / min(seconds), count / median(seconds)
