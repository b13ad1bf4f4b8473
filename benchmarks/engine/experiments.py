"""What a user waits for: one event per call, many, files, subscribing, starting; beside a plain loop and a database."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Final

from benchmarks.engine.session import (
    DUCKDB,
    ENGINE,
    LAMBDAS,
    MATCH,
    PER_EVENT,
    EngineSession,
    flights_engine,
    run_async,
)
from benchmarks.engine.stages import Stages
from benchmarks.engine.workload import (
    DEMO_LAMBDAS,
    DEMO_SQL,
    STREAM,
    Alerts,
    compile_lambda,
    compiled_lambdas,
    dicts,
    draw_alerts,
    event_columns,
)
from benchmarks.lesubscribe.workload import WORKLOADS, Workload
from benchmarks.runner.benchmark import Benchmark, Experiment, sweep
from benchmarks.runner.plots import Bars, Panel, grouped_bars, lines
from benchmarks.runner.session import scales
from benchmarks.runner.tables import show_by_place
from benchmarks.workloads.tabular import ID, event_table, templates
from tocsin import Engine
from tocsin.cli.flights import SEQUENCES, SUBSCRIPTIONS, VIEWS
from tocsin.formats import EventFields, EventReader
from tocsin.formats.files import open_events

SCALES: Final = scales(
    alerts=(10_000, 100_000),
    many=(50_000, 1_000_000),  # subscriptions of Le Subscribe's W0, and where memory is measured
    texts=(2_000, 100_000),
    sequences=(50, 500),  # that are subscribed
    few=((1, 10, 100), (1, 2, 5, 10, 20, 50, 100, 150, 200, 500, 1_000)),  # where lines may cross
    in_files=((1, 100), (1, 12, 100, 1_000)),
    formats=((".jsonl", ".csv", ".parquet"), (".jsonl", ".csv", ".parquet")),
    calls=(300, 3_000),  # events, one per call
    events=(2_000, 50_000),
    flights=(5_000, 336_776),
    rounds=(2, 7),
    runs=(1, 3),  # of a process
)

_JUMP: Final = "from stock a next stock b on b.name = a.name where b.price > {} * a.price"
_BEST: Final = "select min(per) from table stock where risk between {} and 60"


# one event per call


def _one_event(session: EngineSession) -> None:
    """Time `publish` of a dict for filters, a sequence and a view, and `apublish`."""
    scale = session.scale
    alerts = session.engine(draw_alerts(scale.alerts))
    events = dicts(scale.calls)
    found = session.record_calls(
        {
            "alerts, 3.3 matches": partial(_publish_each, alerts, events),
            "apublish": partial(run_async, alerts, events),
        },
        len(events),
        scale.alerts,
    )
    over = found["apublish"] - found["alerts, 3.3 matches"]
    session.record(PER_EVENT, "apublish over publish", scale.alerts, over, "µs")
    wide, wide_events = _le_subscribe(scale.many, scale.calls)
    session.record_calls(
        {"Le Subscribe's W0": partial(_publish_each, wide, wide_events)}, len(wide_events), scale.many
    )
    del wide
    trades = [
        {"name": f"S{i % 50}", "price": 100.0 + i * 37 % 11, "risk": 30, "per": i % 19, "volume": i}
        for i in range(scale.calls)
    ]
    sequences, views = Engine(), Engine()
    sequences.subscribe(_JUMP.format(1.05))
    views.table("stock", key="name")
    views.subscribe(_BEST.format(20))
    session.record_calls(
        {
            "one sequence": partial(_publish_each, sequences, trades, "stock"),
            "one view": partial(_publish_each, views, trades, "stock"),
        },
        len(trades),
        1,
    )


def _publish_each(engine: Engine, events: list[dict[str, Any]], stream: str | None = None) -> None:
    for event in events:
        engine.publish(event, stream=stream)


def _le_subscribe(subscriptions: int, events: int) -> tuple[Engine, list[dict[str, Any]]]:
    """Return an engine with subscriptions of W0, and its events as dicts."""
    workload, engine = Workload(WORKLOADS["W0"]), Engine()
    for one in templates(workload.subscriptions(0, subscriptions)):
        engine.subscribe_many(one.text, one.with_ids(), id=ID)
    table = event_table(workload.events(0, events), WORKLOADS["W0"].names).drop_columns(["event_id"])
    return engine, table.to_pylist()


def _few(session: EngineSession) -> None:
    """Time `publish` beside a loop over lambdas, by the number of subscriptions, and find where they cross."""
    events = dicts(session.scale.calls)
    points = []
    for number in session.scale.few:
        alerts = draw_alerts(number)
        engine, conditions = Engine(), compiled_lambdas(alerts)
        for id_, text in _texts(alerts).items():
            engine.subscribe(text, id=id_)
        works: dict[str, Callable[[], object]] = {
            ENGINE: partial(_publish_each, engine, events),
            LAMBDAS: partial(_try_each, conditions, events),
        }
        found = session.record_calls(works, len(events), number)
        points.append((number, found[ENGINE] - found[LAMBDAS]))
    for (before, above), (after, below) in pairwise(points):
        if above > 0 >= below:
            crossing = before + (after - before) * above / (above - below)
            session.record("subscriptions where the lines cross", ENGINE, after, crossing, "subscriptions")


def _try_each(
    conditions: list[Callable[[Mapping[str, Any]], bool]], events: list[dict[str, Any]]
) -> list[int]:
    return [number for event in events for number, condition in enumerate(conditions) if condition(event)]


def _texts(alerts: list[Alerts]) -> dict[str, str]:
    numbers = count()
    return {f"alert-{next(numbers)}": text for one in alerts for text in one.texts()}


# many events


def _many_events(session: EngineSession) -> None:
    """Time batches of dicts and of columns, and the matcher alone."""
    scale = session.scale
    engine = session.engine(draw_alerts(scale.alerts))
    table, rows = event_columns(scale.events), dicts(scale.events)
    works: dict[str, Callable[[], object]] = {
        "publish_many, dicts to objects": lambda: list(engine.publish_many(rows)),
        "publish_many, Arrow to objects": lambda: list(engine.publish_many(table)),
        "publish_many, Arrow to columns": lambda: engine.publish_many(table).to_arrow(),
        "match, dicts": lambda: engine.match(rows),
        "match, Arrow": lambda: engine.match(table),
    }
    session.record_calls(works, scale.events, scale.alerts)


def _flights(session: EngineSession) -> None:
    """Time all 14 subscriptions of the demo over the flights of a Parquet file, beside a loop with its filters alone."""
    file = session.event_file(".parquet")
    conditions = [compile_lambda(code, timestamps=True) for code in DEMO_LAMBDAS.values()]

    def by_engine() -> None:
        engine = flights_engine(SUBSCRIPTIONS | SEQUENCES | VIEWS)
        notified = sum(1 for _ in engine.publish_many(session.read(file), stream=STREAM, time="time"))
        session.agree("flights", notified)

    def by_lambdas() -> None:
        for row in session.read(file).to_pylist():
            event = {name: value for name, value in row.items() if value is not None}
            for condition in conditions:
                condition(event)

    works = {ENGINE: by_engine, f"{LAMBDAS}, filters only": by_lambdas}
    for label, seconds in session.best(works, session.events.num_rows).items():
        session.record("events/s", label, session.events.num_rows, 1 / seconds, "events/s")


# from a file to a file


def _files(session: EngineSession) -> None:
    """Time `tocsin match` with the demo's filters, from each format to JSON lines, beside a plain loop and DuckDB."""
    subscriptions = session.folder / "demo.jsonl"
    _write_subscriptions(subscriptions, SUBSCRIPTIONS)
    for suffix in session.scale.formats:
        _compare_files(session, suffix, subscriptions, DEMO_LAMBDAS, DEMO_SQL)


def _files_by_number(session: EngineSession, number: int) -> None:
    """Time alerts from JSON lines to JSON lines, by their number."""
    alerts = draw_alerts(number)
    subscriptions = session.folder / f"alerts-{number}.jsonl"
    texts = _texts(alerts)
    _write_subscriptions(subscriptions, texts)
    codes = dict(zip(texts, (code for one in alerts for code in one.lambdas()), strict=True))
    _compare_files(session, ".jsonl", subscriptions, codes)


def _breakdown(session: EngineSession) -> None:
    """Divide the time from a file to lines of JSON among reading, encoding, matching and notifying."""
    number = session.scale.alerts
    engine = session.engine(draw_alerts(number))
    for suffix in session.scale.formats:
        file, best = session.event_file(suffix), None
        for _ in range(session.scale.runs):
            session.tell(suffix)
            with (session.folder / "notifications.jsonl").open("wb") as out, Stages() as stages:
                source = open_events(file, EventReader(EventFields(time="time"), stream=STREAM))
                for notifications in engine.publish_batches(stages.reading(source.blocks())):
                    stages.write(notifications, out)
            seconds = stages.seconds()
            best = seconds if best is None or sum(seconds.values()) < sum(best.values()) else best
        for stage, value in (best or {}).items():
            session.record("time", stage, suffix, value / session.events.num_rows * 1e6, "µs")


def _write_subscriptions(file: Path, texts: Mapping[str, str]) -> None:
    file.write_text("".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in texts.items()))


def _compare_files(
    session: EngineSession,
    suffix: str,
    subscriptions: Path,
    codes: Mapping[str, str],
    sql: Mapping[str, str] | None = None,
) -> None:
    """Record events a processor second of each contender, without its start, which is the time for a file of one event."""
    at = len(codes) if sql is None else suffix
    lambdas = session.folder / "codes.json"
    lambdas.write_text(json.dumps(codes))
    output = session.folder / "notifications.jsonl"
    options = ("--stream", STREAM, "--time-field", "time", "--quiet", "-o", output)

    def by_tocsin(file: Path) -> float:
        return session.run("-m", "tocsin", "match", file, "-f", subscriptions, *options)[1]

    def by_lambdas(file: Path) -> float:
        return session.run("-m", "benchmarks.engine.plain_loop", file, lambdas, output)[1]

    contenders = {MATCH: by_tocsin, LAMBDAS: by_lambdas}
    if sql is not None and not session.lacks("duckdb", DUCKDB):
        contenders[DUCKDB] = partial(_by_duckdb, session, sql, output)
    whole, one = session.event_file(suffix), session.event_file(suffix, 1)
    best: dict[str, float] = {}
    start: dict[str, float] = {}
    for _ in range(session.scale.runs):
        for label, run in contenders.items():
            session.tell(f"{label}, {suffix}")
            start[label] = min(start.get(label, 1e9), run(one))
            best[label] = min(best.get(label, 1e9), run(whole))
            session.agree(f"{whole} {subscriptions}", len(output.read_text().splitlines()))
    for label, seconds in best.items():
        rate = session.events.num_rows / max(seconds - start[label], 1e-9)
        session.record("events/s", label, at, rate, "events/s")
        session.record("start", label, at, start[label], "s")


def _by_duckdb(session: EngineSession, sql: Mapping[str, str], output: Path, file: Path) -> float:
    """Return the processor seconds of a process with a query for each subscription, to JSON lines."""
    queries = " union all ".join(
        f"select {_quoted(name)} as subscription, * from events where {condition}"  # noqa: S608 - our own text
        for name, condition in sql.items()
    )
    statement = (
        f"set threads = 1; create table events as select * from {_quoted(str(file))};"  # noqa: S608
        f" copy ({queries}) to {_quoted(str(output))} (format json)"
    )
    return session.run("-c", f"import duckdb; duckdb.sql({statement!r})")[1]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# before the first event


def _subscribing(session: EngineSession) -> None:
    """Time subscriptions of texts, one by one and at once, of sequences and of a template's rows."""
    scale = session.scale
    alerts = draw_alerts(scale.texts)
    texts = _texts(alerts)
    few = list(texts.items())[: min(scale.texts, 2_000)]
    jumps = [_JUMP.format(1.01 + i / 1_000) for i in range(scale.sequences)]

    def one_by_one() -> None:
        engine = Engine()
        for id_, text in few:
            engine.subscribe(text, id=id_)

    def sequences() -> None:
        engine = Engine()
        for text in jumps:
            engine.subscribe(text)

    for label, work, number in (
        ("a text", one_by_one, len(few)),
        ("texts at once", lambda: Engine().apply(texts), len(texts)),
        ("a sequence", sequences, len(jumps)),
        ("a template's row", lambda: session.engine(alerts), len(texts)),
    ):
        seconds = session.best({label: work}, number)[label]
        session.record("µs each", label, number, seconds * 1e6, "µs")


def _memory(session: EngineSession) -> None:
    """Record the bytes of a subscription, in processes of their own."""
    for kind, number in (("template", session.scale.many), ("text", session.scale.texts)):
        session.tell(kind)
        _, _, printed = session.run("-m", "benchmarks.engine.memory", kind, str(number))
        found = json.loads(printed)
        session.record("bytes", kind, number, found["resident"], "bytes")
        session.record("of which the matcher", kind, number, found["matcher"], "bytes")
        beyond = found["resident"] - found["matcher"]
        session.record("bytes beyond the matcher", kind, number, beyond, "bytes")


def _start(session: EngineSession) -> None:
    """Record what a user waits for before anything happens: imports, and compiling from an empty cache."""
    commands: dict[str, tuple[str, ...]] = {
        "python": ("-c", "pass"),
        "from tocsin import Engine": ("-c", "from tocsin import Engine"),
        "tocsin --help": ("-m", "tocsin", "--help"),
    }
    for label, command in commands.items():
        session.tell(label)
        runs = [session.run(*command) for _ in range(session.scale.runs + 2)]
        session.record("seconds", label, "", min(run[0] for run in runs), "s")
    session.tell("compiling")
    cache = session.folder / "empty-cache"
    seconds, processor, _ = session.run("-m", "benchmarks.engine.first_use", cache=cache)
    label = "compiling, from an empty cache"
    session.record("seconds", label, "", seconds, "s")
    session.record("processor seconds", label, "", processor, "s")


BENCHMARK: Final = Benchmark(
    name="engine",
    title="The engine and the command line, as their users meet them.",
    sizes="small: a minute once everything is compiled; paper: seven minutes",
    scales=SCALES,
    session=EngineSession,
    experiments={
        "one event": Experiment("one event per call, from a dict", "subscriptions", _one_event),
        "few": Experiment("one event per call, by the number of subscriptions", "subscriptions", _few),
        "many events": Experiment("many events per call", "subscriptions", _many_events),
        "flights": Experiment("14 subscriptions over flights from Parquet", "events", _flights),
        "files": Experiment("12 filters, from a file to JSON lines", "format", _files),
        "files by number": Experiment(
            "alerts, from JSON lines to JSON lines", "subscriptions", sweep("in_files", _files_by_number)
        ),
        "breakdown": Experiment("where the time goes, from a file to JSON lines", "format", _breakdown),
        "subscribing": Experiment("subscribing", "subscriptions", _subscribing),
        "memory": Experiment("the memory of a subscription", "subscriptions", _memory),
        "start": Experiment("before the first event", "", _start),
    },
    show=partial(show_by_place, of="what"),
    plots={
        "crossing": lines(Panel("few", PER_EVENT, "subscriptions", "one event per call, from a dict")),
        "files": grouped_bars(
            Bars("files", "events/s", "12 filters, from a file to JSON lines"),
            Bars("files by number", "events/s", "alerts, from JSON lines to JSON lines, by their number"),
        ),
        "breakdown": grouped_bars(Bars("breakdown", "time", "µs an event, from a file to JSON lines")),
    },
)
