"""All experiments in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.cayuga import experiments as work
from benchmarks.cayuga.inputs import Data, Material
from benchmarks.cayuga.loading import loading
from benchmarks.cayuga.scales import SMALL, Scale
from benchmarks.cayuga.session import Session
from benchmarks.cayuga.ticks import ticks
from benchmarks.runner.experiment import Experiment, check_choice
from benchmarks.runner.report import Report

MATCHER: Final = "dynamic"

EXPERIMENTS: Final[Mapping[str, Experiment[Session]]] = {
    "subscriptions": Experiment("Figure 6a: number of subscriptions", "subscriptions", work.subscriptions),
    "skew": Experiment("Figure 6b: skew", "zipf1", work.skew),
    "selectivity": Experiment("Figure 6c: selectivity of inequalities", "selectivity", work.selectivity),
    "optimisation": Experiment("Figure 7: parts switched off, Filter", "subscriptions", work.optimisation),
    "rss": Experiment("Figure 8: feeds", "subscriptions", work.feed),
    "loading": Experiment("Loading LinearStat", "subscriptions", loading),
    "ticks": Experiment("S3 and S4 over prices of stocks", "prices", ticks),
}


def run(
    scale: Scale = SMALL,
    matcher: str = MATCHER,
    data: Data | None = None,
    *,
    experiments: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run these experiments, or all, with this matcher for the static parts of sequences."""
    check_choice(experiments, [matcher], EXPERIMENTS)
    material = Material(data or Data(), scale)
    session = Session(scale, matcher, material, progress)
    session.begin("starting")
    compiling = work.compile_all(session)
    for name in experiments or EXPERIMENTS:
        session.begin(name)
        EXPERIMENTS[name].work(session)
    return Report.of(
        "cayuga",
        session.measurements,
        scale=scale.name,
        matcher=matcher,
        left_out="; ".join(session.left_out) or "nothing",
        compile_s=compiling,
        **material.described(),
    )
