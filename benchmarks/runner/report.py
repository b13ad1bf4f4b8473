"""Measurements, and the report of a run."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from tocsin import __version__
from tocsin.cli.output import write_json


class Measurement(Struct, frozen=True):
    """One line of a report: a value with its unit, the target if there is one, and where it was measured."""

    name: str
    value: float
    unit: str
    target: float | None = None
    details: Mapping[str, float | str] = {}


class Report(Struct, frozen=True):
    """A benchmark's measurements, its parameters and the machine they were taken on."""

    benchmark: str
    measurements: tuple[Measurement, ...]
    parameters: Mapping[str, float | str]
    machine: Mapping[str, float | str]

    @classmethod
    def of(cls, benchmark: str, measurements: Iterable[Measurement], **parameters: float | str) -> Report:
        """Return the report of a run on this machine."""
        machine: dict[str, float | str] = {
            "tocsin": __version__,
            "python": platform.python_version(),
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count() or 1,
        }
        return cls(benchmark, tuple(measurements), parameters, machine)

    @classmethod
    def read(cls, path: Path) -> Report:
        """Return a report that was written before."""
        return msgspec.json.decode(path.read_bytes(), type=cls)

    def write(self, path: Path) -> None:
        """Write the report as JSON."""
        write_json(path, self)


def of_experiment(
    measurements: Iterable[Measurement], experiment: str, name: str = "", unit: str = ""
) -> list[Measurement]:
    """Return the measurements of an experiment, or only those with a name or a unit."""
    return [
        one
        for one in measurements
        if one.details.get("experiment") == experiment and name in ("", one.name) and unit in ("", one.unit)
    ]
