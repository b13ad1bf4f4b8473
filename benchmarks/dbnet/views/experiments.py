"""The experiments on the server's side."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.dbnet.views import server
from benchmarks.dbnet.views.databases import databases
from benchmarks.dbnet.views.engine import engine
from benchmarks.dbnet.views.kinds import by_matcher, kinds
from benchmarks.dbnet.views.notified import notified
from benchmarks.dbnet.views.plots import PLOTS
from benchmarks.dbnet.views.scale import SCALES
from benchmarks.dbnet.views.session import ViewSession
from benchmarks.runner.benchmark import MATCHERS, Benchmark, Experiment, Option
from benchmarks.runner.tables import show_by_place

EXPERIMENTS: Final[Mapping[str, Experiment[ViewSession]]] = {
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

BENCHMARK: Final = Benchmark(
    name="views",
    title="Database/network interface (SIGMOD 2006), the server's side: updates of tables to changed answers.",
    sizes="small: about a minute; paper: up to 1,000,000 subscriptions",
    scales=SCALES,
    session=ViewSession,
    experiments=EXPERIMENTS,
    show=partial(show_by_place, of="of"),
    plots=PLOTS,
    options=(MATCHERS, Option("data", "Read quotes from this folder's stock_quotes.jsonl.gz.", Path)),
)
