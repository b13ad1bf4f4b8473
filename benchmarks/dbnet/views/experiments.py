"""The experiments on the server's side, with their sizes and plots."""

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
from benchmarks.dbnet.views.session import ViewSession
from benchmarks.runner.benchmark import MATCHERS, Benchmark, Experiment, Option
from benchmarks.runner.plots import Panel, Plot, lines, ranked_bars
from benchmarks.runner.session import scales
from benchmarks.runner.tables import show_by_place

SCALES: Final = scales(
    reformulated=((1_000, 10_000), (10_000, 100_000, 1_000_000)),  # rows, where updates are only reformulated
    database=((1_000, 5_000), (10_000, 20_000, 40_000, 60_000, 80_000, 100_000)),  # rows (figure 6),
    heard=(20_000, 500_000),  # and the subscriptions there
    subscriptions=((10_000, 40_000), (100_000, 200_000, 400_000, 600_000, 800_000, 1_000_000)),  # (figure 8),
    few_rows=(1_000, 10_000),  # and the rows there
    rows=(10_000, 100_000),  # everywhere else
    notified=(50_000, 1_000_000),  # subscriptions that many updates or next to none notify
    # subscriptions, where kinds, matchers, databases and ways of asking are compared
    compared=(5_000, 100_000),
    rivalled=((1_000,), (10_000,)),  # rows of the databases
    stocks=(300, 3_053),  # of quotes that are made up,
    steps=(20, 120),  # for so many steps
    updates=(10_000, 200_000),  # that a figure is taken from,
    seconds=(0.5, 10.0),  # or as many batches of them as this time allows
    batch=(1_000, 1_000),  # updates
    crowded=(10, 10),  # updates in a batch, where each notifies very many
    single=(200, 2_000),  # updates that are given one by one
    checked=(100, 100),  # updates whose effect is recomputed,
    sample=(50, 50),  # for so many subscriptions
)

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

_OUT: Final = "messages an update"

PLOTS: Final[Mapping[str, Plot]] = {
    "reformulate": lines(
        Panel("reformulate", "time", "rows", "time an update"),
        Panel("reformulate", "messages", "rows", _OUT),
        Panel("reformulate", "memory", "rows", "bytes a row"),
    ),
    "server-rows": lines(
        Panel("database-size", "time", "rows", "figure 6: time an update"),
        Panel("database-size", "outgoing", "rows", f"table 2: {_OUT}"),
    ),
    "server-subscriptions": lines(
        Panel("subscriptions", "time", "subscriptions", "figure 8: time an update"),
        Panel("subscriptions", "outgoing", "subscriptions", f"table 3: {_OUT}"),
    ),
    "kinds": ranked_bars("kinds", "updates", "updates a second by the kind of view", own=("",)),
    "matchers": ranked_bars("matchers", "time", "time of a message by matcher"),
    "databases": ranked_bars("databases", "average", "time of an update of Table 1"),
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
