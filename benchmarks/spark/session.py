"""A run of the experiments: its inputs, the Spark processes that take part, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.runner.report import Measurement
from benchmarks.spark.inputs import Inputs
from benchmarks.spark.process import SparkProcess
from benchmarks.spark.scales import PAPER, Scale

_TARGETS: Final = {  # (measurement, what it is of)
    ("faster than the join", "nested loop; texts"): 100.0,
    ("share of the engine's rate", "memory"): 60.0,
    ("share of the engine's rate", "Parquet"): 60.0,
    ("gain of a second core", "memory"): 1.4,
    ("gain of a second core", "Parquet"): 1.4,
    ("micro-batches to the effect", "stream"): 2.0,
}
_AT_ANY_SIZE: Final = ("micro-batches to the effect",)


class Session:
    """Gathers measurements; each says which experiment it is of, and what it is a figure of."""

    def __init__(
        self, scale: Scale, folder: Path, processes: Sequence[SparkProcess], progress: Callable[[str], None]
    ) -> None:
        self.scale = scale
        self.folder = folder
        self.one, self.two = processes  # on one core, and on two
        self.inputs = Inputs(scale, folder)
        self.measurements: list[Measurement] = []
        self._progress = progress
        self._experiment = ""

    def begin(self, experiment: str) -> None:
        """Let what follows belong to an experiment."""
        self._experiment = experiment
        self._progress(experiment)

    def tell(self, text: str) -> None:
        """Tell how far the experiment is."""
        self._progress(f"{self._experiment}: {text}")

    def rounds(self, what: str) -> Iterator[bool]:
        """Return, for each round of a measurement, whether it counts; the first one is to warm up."""
        for turn in range(self.scale.rounds + 1):
            self.tell(f"{what}, round {turn} of {self.scale.rounds}")
            yield turn > 0

    def record(
        self, name: str, of: str, figure: float | Sequence[float], unit: str, **details: float | str
    ) -> None:
        """Keep a figure, or the median of several runs."""
        told: dict[str, float | str] = {"experiment": self._experiment, "of": of}
        if isinstance(figure, Sequence):
            told |= {"runs": len(figure), "lowest": min(figure), "highest": max(figure)}
            figure = median(figure)
        told |= {key.replace("_", " "): value for key, value in details.items()}
        is_aimed = self.scale.name == PAPER.name or name in _AT_ANY_SIZE
        target = _TARGETS.get((name, of)) if is_aimed else None
        self.measurements.append(Measurement(name, float(figure), unit, target, told))
