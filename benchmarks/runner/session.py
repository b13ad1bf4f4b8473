"""A run of experiments: who takes part, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.runner.report import Measurement
from benchmarks.runner.subject import Contender


class MatcherSession:
    """Gathers measurements; each says which experiment it is of, which matcher, and at what."""

    def __init__(self, matchers: Sequence[str], progress: Callable[[str], None]) -> None:
        self.contenders = [Contender.of(name) for name in matchers]
        self.measurements: list[Measurement] = []
        self.left_out: list[str] = []
        self._progress = progress
        self._experiment = ""

    def begin(self, experiment: str) -> None:
        """Let what follows belong to an experiment."""
        self._experiment = experiment
        self._progress(experiment)

    def tell(self, contender: Contender, text: str) -> None:
        """Tell how far the experiment is."""
        self._progress(f"{self._experiment}: {contender.label}, {text}")

    def taking_part(self, contenders: Sequence[Contender]) -> Iterator[Contender]:
        """Return those contenders whose matchers were asked for."""
        names = {contender.matcher for contender in self.contenders}
        return (contender for contender in contenders if contender.matcher in names)

    def record(
        self,
        name: str,
        contender: Contender,
        at: float | str,
        figure: tuple[float, str],
        **details: float | str | None,
    ) -> None:
        """Keep a figure and its unit."""
        told = {key.replace("_", " "): value for key, value in details.items() if value is not None}
        self.measurements.append(
            Measurement(
                name,
                *figure,
                self.target(name, contender.label, at),
                {"experiment": self._experiment, "matcher": contender.label, "at": at, **told},
            )
        )

    def target(self, name: str, matcher: str, at: float | str) -> float | None:  # noqa: ARG002
        """Return what a figure is to reach, or None."""
        return None
