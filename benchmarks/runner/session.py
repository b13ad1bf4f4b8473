"""A run of experiments: its scale, its contenders, its data, and the measurements taken so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from msgspec import defstruct

from benchmarks.runner.report import Measurement
from benchmarks.runner.subject import Contender, Subject
from tocsin.matching import create_matcher, registered_matchers
from tocsin.model.errors import TocsinError
from tocsin.model.installation import install_hint

SMALL: Final = "small"
PAPER: Final = "paper"
"""The scale that targets are set for."""

DataFiles: TypeAlias = Mapping[str, Path | None]

Progress: TypeAlias = Callable[[str], None]
Targets: TypeAlias = Mapping[tuple[str, str, str, float | str], float]
"""Values to be reached on one core, by experiment, measurement, contender and place; "" is any contender or place."""


STARTING: Final = "starting"
"""The experiment before all others, in which everything is compiled."""


def scales(**sizes: tuple[Any, Any]) -> dict[str, Any]:
    """Return the scales `small` and `paper`: structs of the named sizes, which are given for both in this order."""
    kind: Any = defstruct("Scale", [("name", str), *((field, Any) for field in sizes)], frozen=True)
    columns = zip(*sizes.values(), strict=True)
    return {name: kind(name, *values) for name, values in zip((SMALL, PAPER), columns, strict=True)}


def silent(_: str) -> None:
    """Show no progress."""


class Session:
    """Collects measurements; each names its experiment, its contender and its place."""

    targets: ClassVar[Targets] = {}

    def __init__(self, scale: Any, progress: Progress = silent) -> None:
        self.scale = scale
        self.experiment = ""
        self.measurements: list[Measurement] = []
        self.left_out: list[str] = []
        self.progress = progress

    def compile(self, measures: Sequence[Callable[[Any], None]]) -> None:
        """Use everything once, so that nothing is compiled while it is timed."""

    def begin(self, experiment: str) -> None:
        """Assign the following measurements to an experiment."""
        self.experiment = experiment
        self.progress(experiment)

    def tell(self, label: str, text: str = "") -> None:
        """Show how far the experiment is."""
        self.progress(", ".join(filter(None, (f"{self.experiment}: {label}", text))))

    def record(
        self, name: str, label: str, at: float | str, value: float, unit: str, **details: float | str | None
    ) -> None:
        """Keep a measurement; details that are None are left out."""
        where = {"experiment": self.experiment, "matcher": label, "at": at}
        target = self.target(name, label, at)
        self.measurements.append(Measurement(name, float(value), unit, target, where | _named(details)))

    def record_runs(
        self, name: str, of: str, value: float | Sequence[float], unit: str, **details: float | str
    ) -> None:
        """Keep a measurement that has no place, or the median of several runs of it."""
        where: dict[str, float | str] = {"experiment": self.experiment, "of": of}
        if isinstance(value, Sequence):
            where |= {"runs": len(value), "lowest": min(value), "highest": max(value)}
            value = median(value)
        target = self.target(name, of, "")
        self.measurements.append(Measurement(name, float(value), unit, target, where | _named(details)))

    def target(self, name: str, label: str, at: float | str) -> float | None:
        """Return the value to be reached on one core, or None; targets are set for the paper's scale."""
        if self.scale.name != PAPER:
            return None
        places = ((label, at), (label, ""), ("", ""))
        found = (self.targets.get((self.experiment, name, *place)) for place in places)
        return next((target for target in found if target is not None), None)

    def lacks(self, package: str, label: str) -> bool:
        """Return whether a package is not installed, and name the contender that needs it as left out."""
        if find_spec(package) is not None:
            return False
        remedy = f"{label} needs {package}; install it with {install_hint('bench')}"
        self.left_out.append(f"{self.experiment}: {remedy}")
        return True

    def finish(self) -> None:
        """Complete the measurements after all experiments."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names."""
        return {"scale": self.scale.name, "left_out": "; ".join(self.left_out) or "nothing"}

    def close(self) -> None:
        """Release processes and files."""


class MatcherSession(Session):
    """A session whose contenders are matchers: the named ones, or those of the paper that are registered."""

    paper: tuple[str, ...] = ()
    subject: type[Subject] = Subject

    def __init__(self, scale: Any, matcher: Sequence[str] = (), *, progress: Progress = silent) -> None:
        super().__init__(scale, progress)
        known = registered_matchers()
        for name in matcher:
            create_matcher(name)  # raises for an unknown one
        self.contenders = [Contender.of(name) for name in matcher or self.paper if matcher or name in known]
        self.absent = [name for name in self.paper if name not in known and not matcher]

    def compile(self, measures: Sequence[Callable[[Any], None]]) -> None:  # noqa: ARG002 - all need the matchers
        """Use every matcher once, so that nothing is compiled while it is timed."""
        for contender in self.contenders:
            self.tell(contender.label, "compiling")
            for workload in self.small_workloads():
                subject = self.subject(contender)
                subject.warm_up()
                subject.load(workload.subscriptions(0, 2_000))
                subject.time(workload.events(0, 100))
                subject.remove(np.arange(100, dtype=np.int64))

    def small_workloads(self) -> Sequence[Any]:
        """Return workloads that use every kernel."""
        return ()

    def taking_part(self, contenders: Iterable[Contender]) -> Iterator[Contender]:
        """Return the contenders whose matchers take part."""
        names = {contender.matcher for contender in self.contenders}
        return (contender for contender in contenders if contender.matcher in names)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names, with the matchers."""
        names = ", ".join(contender.label for contender in self.contenders)
        return {**super().parameters(), "matchers": names, "not_there": ", ".join(self.absent) or "none"}


def _named(details: Mapping[str, float | str | None]) -> dict[str, float | str]:
    return {key.replace("_", " "): value for key, value in details.items() if value is not None}


def find_data(
    usual: Mapping[str, str], folder: Path | None, advice: str, **given: Path | None
) -> dict[str, Path | None]:
    """Return the file of each kind of data: the given one, else the one that a folder has under its usual name.

    Raise `TocsinError` for files that do not exist, with advice.
    """
    there = {name: folder / file for name, file in usual.items() if folder is not None and file}
    files = {name: given.get(name) or there.get(name) for name in usual}
    missing = [str(path) for path in files.values() if path is not None and not path.exists()]
    if missing:
        raise TocsinError(f"there is no {' and no '.join(missing)}; {advice}")
    return files


def origins(files: DataFiles) -> dict[str, str]:
    """Return where each kind of data comes from, as the report names it."""
    return {name: "made up" if path is None else path.name for name, path in files.items()}
