"""All experiments in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.lesubscribe import experiments
from benchmarks.lesubscribe.scales import SMALL, Scale
from benchmarks.lesubscribe.session import Session
from benchmarks.runner.experiment import Experiment, check_choice
from benchmarks.runner.report import Report
from tocsin.matching import registered_matchers

MATCHERS: Final = ("counting", "propagation", "propagation-wp", "static", "dynamic")
"""Those of the paper, in its order."""


EXPERIMENTS: Final[Mapping[str, Experiment[Session]]] = {
    "subscriptions": Experiment("W0, equalities", "subscriptions", experiments.subscriptions),
    "subscriptions with ranges": Experiment(
        "W0 with ranges", "subscriptions", experiments.subscriptions_with_ranges
    ),
    "operators": Experiment("mix of operators", "workload", experiments.operators),
    "domain": Experiment("number of values", "values", experiments.domains),
    "predicates": Experiment("predicates in a subscription", "predicates", experiments.predicates),
    "drift": Experiment("schemas drift, W3 to W4", "hours", experiments.drift),
    "skew": Experiment("values become skewed, W5 to W6", "hours", experiments.skew),
    "churn": Experiment("subscriptions come and go", "subscriptions", experiments.churn),
    "dicts": Experiment("from Python dicts", "subscriptions", experiments.dicts),
    "two attributes": Experiment(
        "propagation-wp over dynamic with pairs only (by analysis: the values)",
        "values",
        experiments.two_attributes,
    ),
}


def run(
    scale: Scale = SMALL,
    matchers: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run every experiment with these matchers, or with all of the paper's that there are."""
    check_choice((), matchers, EXPERIMENTS)
    known = registered_matchers()
    session = Session(scale, matchers or [name for name in MATCHERS if name in known], progress)
    session.begin("starting")
    compiling = session.compile()
    for name, experiment in EXPERIMENTS.items():
        session.begin(name)
        experiment.work(session)
    taking_part = ", ".join(contender.label for contender in session.contenders)
    left_out = "; ".join(session.left_out) or "nothing"
    return Report.of(
        "lesubscribe",
        session.measurements,
        scale=scale.name,
        matchers=taking_part,
        left_out=left_out,
        compile_s=compiling,
    )
