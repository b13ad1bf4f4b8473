"""All experiments in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from benchmarks.dbnet.views import server
from benchmarks.dbnet.views.databases import databases
from benchmarks.dbnet.views.engine import engine
from benchmarks.dbnet.views.inputs import Data, Material
from benchmarks.dbnet.views.kinds import by_matcher, kinds
from benchmarks.dbnet.views.notified import notified
from benchmarks.dbnet.views.scales import SMALL, Scale
from benchmarks.dbnet.views.session import Session
from benchmarks.runner.experiment import Experiment, check_choice
from benchmarks.runner.report import Report

EXPERIMENTS: Final[Mapping[str, Experiment[Session]]] = {
    "reformulate": Experiment("Reformulating updates of min", "rows", server.reformulate),
    "database-size": Experiment("Figure 6, table 2: number of rows", "rows", server.database_size),
    "subscriptions": Experiment(
        "Figure 8, table 3: number of subscriptions", "subscriptions", server.subscriptions
    ),
    "notified": Experiment("From updates of min to the notified", "subscriptions", notified),
    "kinds": Experiment("Kinds of view", "subscriptions", kinds),
    "matchers": Experiment("Messages of min by matcher", "subscriptions", by_matcher),
    "databases": Experiment("Beside databases that ask again", "rows", databases),
    "engine": Experiment("Min through the engine", "subscriptions", engine),
    "trace": Experiment("Quotes of stocks", "stocks", server.trace),
}
MATCHERS: Final = ("points", "be-tree", "opindex", "dynamic", "counting")
_TRIED: Final = {  # sizes with which everything is used once
    "reformulated": (100,),
    "database": (100,),
    "heard": 200,
    "subscriptions": (200,),
    "few_rows": 100,
    "rows": 100,
    "notified": 200,
    "compared": 100,
    "rivalled": (50,),
    "stocks": 20,
    "steps": 5,
    "updates": 200,
    "seconds": 0.1,
    "single": 10,
    "checked": 20,
}


def run(
    scale: Scale = SMALL,
    matchers: Sequence[str] = (),
    data: Data | None = None,
    *,
    experiments: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Run these experiments, or all; the point index is compared with these matchers, or with all of `MATCHERS`."""
    taking_part = matchers or MATCHERS
    check_choice(experiments, matchers, EXPERIMENTS)
    compiling = _compile_all(scale, experiments or tuple(EXPERIMENTS), taking_part, progress)
    material = Material(data or Data(), scale)
    session = Session(scale, material, taking_part, progress)
    for name in experiments or EXPERIMENTS:
        session.begin(name)
        EXPERIMENTS[name].work(session)
    return Report.of(
        "views",
        session.measurements,
        scale=scale.name,
        left_out="; ".join(session.left_out) or "nothing",
        compile_s=compiling,
        **material.described(),
    )


def _compile_all(
    scale: Scale, experiments: Sequence[str], matchers: Sequence[str], progress: Callable[[str], None]
) -> float:
    """Run the experiments once with next to nothing, so that nothing is compiled while it is timed; return the seconds."""
    begun = time.perf_counter()
    tiny = replace(scale, name="tried", **_TRIED)
    session = Session(tiny, Material(Data(), tiny), matchers, progress)
    session.begin("starting")
    for name in experiments:
        EXPERIMENTS[name].work(session)
    return time.perf_counter() - begun
