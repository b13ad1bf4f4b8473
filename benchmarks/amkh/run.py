"""All experiments in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.amkh import experiments as work
from benchmarks.amkh.scales import SMALL, Scale
from benchmarks.amkh.session import Session
from benchmarks.runner.experiment import Experiment, check_choice
from benchmarks.runner.report import Report

MATCHERS: Final = ("amkh", "mkh", "dynamic", "opindex")


EXPERIMENTS: Final[Mapping[str, Experiment[Session]]] = {
    "figure 1": Experiment("Figure 1: range of the constants", "6 to x", work.figure_1),
    "best G": Experiment("Best G, by clauses on equality-only attributes", "clauses", work.hashed),
    "best B": Experiment("Best B, by the selectivity of inequalities", "% of values", work.classes),
    "time": Experiment("Time beside other matchers, figure 1's workload", "subscriptions", work.times),
}


def run(
    scale: Scale = SMALL,
    matchers: Sequence[str] = (),
    *,
    experiments: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run these experiments, or all, with these matchers, or with all of `MATCHERS`."""
    check_choice(experiments, matchers, EXPERIMENTS)
    session = Session(scale, matchers or MATCHERS, progress)
    session.begin("starting")
    compiling = session.compile()
    for name in experiments or EXPERIMENTS:
        EXPERIMENTS[name].work(session)
    return Report.of(
        "amkh",
        session.measurements,
        scale=scale.name,
        matchers=", ".join(contender.label for contender in session.contenders),
        usual=scale.usual,
        events=scale.events,
        left_out="; ".join(session.left_out) or "nothing",
        compile_s=compiling,
    )


def titles(report: Report) -> dict[str, tuple[str, str]]:
    """Return what each experiment of a report, or part of one, is called, and what it varies."""
    found = {}
    for name in dict.fromkeys(str(one.details["experiment"]) for one in report.measurements):
        whole, _, part = name.partition(":")
        known = EXPERIMENTS[whole]
        found[name] = (f"{known.title}:{part}" if part else known.title, known.varied)
    return found
