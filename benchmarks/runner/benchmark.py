"""A benchmark: its scales, experiments, options, tables and plots, and how it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from benchmarks.runner.plots import Plot
from benchmarks.runner.report import Report
from benchmarks.runner.session import STARTING, Progress, Session, silent
from tocsin.model.errors import TocsinError

SessionType = TypeVar("SessionType", bound=Session)


class Experiment(Struct, Generic[SessionType], frozen=True):
    """A row of a benchmark's table: what an experiment varies, and how it measures."""

    title: str
    varied: str  # the parameter that a measurement's `at` is a value of
    measure: Callable[[SessionType], None]
    shown: tuple[str, ...] = ()  # the measurements that are printed; all, if empty
    contenders: tuple[str, ...] = ()  # those of the session, if empty


def sweep(over: str, measure: Callable[[SessionType, Any], None]) -> Callable[[SessionType], None]:
    """Return the measuring of an experiment that calls `measure` with each value of the scale's field `over`."""

    def measure_all(session: SessionType) -> None:
        for at in getattr(session.scale, over):
            measure(session, at)

    return measure_all


class Option(Struct, frozen=True):
    """A command-line option of a benchmark, which is an argument of its session."""

    name: str  # of the argument; the option is called so too
    help: str
    kind: Callable[[str], Any] = str
    many: bool = False  # may be given several times
    flag: bool = False


MATCHERS: Final = Option("matcher", "Only this matcher; may be given several times.", many=True)


class Benchmark(Struct, Generic[SessionType], frozen=True, kw_only=True):
    """A table of experiments with the session they run in, and of plots."""

    name: str
    title: str
    sizes: str  # how long a scale takes, or how large it is
    scales: Mapping[str, Any]
    session: Callable[..., SessionType]
    experiments: Mapping[str, Experiment[SessionType]]
    show: Callable[[Report, Mapping[str, Experiment[SessionType]]], None]
    plots: Mapping[str, Plot] = {}
    options: tuple[Option, ...] = ()

    def run(
        self,
        scale: Any = None,
        *,
        experiments: Sequence[str] = (),
        progress: Progress = silent,
        **options: Any,
    ) -> Report:
        """Run these experiments, or all; `options` are arguments of the session.

        Raise `TocsinError` for an unknown experiment or option value before anything is measured.
        """
        unknown = [name for name in experiments if name not in self.experiments]
        if unknown:
            known = ", ".join(self.experiments)
            raise TocsinError(f"there is no experiment `{unknown[0]}`; there are: {known}")
        chosen = {name: self.experiments[name] for name in experiments or self.experiments}
        with closing(self.session(scale or self.scales["small"], progress=progress, **options)) as session:
            session.begin(STARTING)
            begun = time.perf_counter()
            session.compile([one.measure for one in chosen.values()])
            compile_s = time.perf_counter() - begun
            for name, experiment in chosen.items():
                session.begin(name)
                experiment.measure(session)
            session.finish()
            parameters = {"compile_s": compile_s, **session.parameters()}
        return Report.of(self.name, session.measurements, **parameters)
