"""The alternative to Tocsin: a join of events with a table of subscriptions. And the join that AMKH makes."""

from __future__ import annotations

import re
from typing import Any, Final

from benchmarks.lesubscribe.workload import Parameters, Workload
from benchmarks.spark.inputs import write_table
from benchmarks.spark.process import Timed
from benchmarks.spark.session import SparkBenchSession
from benchmarks.workloads.tabular import conditions_table, event_table, text_table
from tocsin.model.errors import SparkError
from tocsin.replay.numbered import names_of

NESTED: Final = "nested loop"
HASHED: Final = "hash join on the fixed attributes"
PLANNED: Final = "plan join"
_WIDTH: Final = 100  # characters of a plan's line
_LEFT_OUT: Final = ("== Physical Plan", "InMemoryRelation", "ColumnarToRow", "FileScan")


def joins(session: SparkBenchSession) -> None:
    """Compare `match`, the making of its index included, with two joins on the same events and subscriptions."""
    own = _matches(session)
    rows = conditions_table(
        Workload(session.scale.workload).subscriptions(0, session.scale.joined), session.scale.workload.names
    )
    conditions = write_table(rows, session.folder / "conditions")
    joined = {NESTED: _nested_loop(session, conditions), HASHED: _hash_join(session, conditions, own)}
    own[PLANNED] = _join_plan(session, own)
    for way, run in own.items():
        for join, seconds in joined.items():
            session.record_runs("faster than the join", f"{join}; {way}", seconds / run.seconds, "times")


def _matches(session: SparkBenchSession) -> dict[str, Timed]:
    """Record the seconds of `match` from texts, and from templates."""
    scale = session.scale
    session.tell("writing the tables")
    texts = text_table(Workload(scale.workload).subscriptions(0, scale.joined))
    sources: dict[str, tuple[str, dict[str, Any]]] = {
        "texts": ("from_texts", {"subscriptions": write_table(texts, session.folder / "texts")}),
        "templates": ("from_templates", {"subscriptions": scale.joined, "workload": scale.workload}),
    }
    found = {}
    for source, (task, arguments) in sources.items():
        session.tell(f"match, subscriptions from {source}")
        folder = str(session.folder / f"joined-{source}")
        run = _ask(session, task, scale.join_events, folder=folder, **arguments)
        _record(session, "match, index included", source, run)
        found[source] = run
    return found


def _nested_loop(session: SparkBenchSession, conditions: str) -> float:
    """Record the seconds for all events; they are extrapolated from samples, unless a sample holds all events."""
    condition = _condition(session.scale.workload, 0)
    spent: dict[int, float] = {}
    plan = ""
    for count in session.scale.join_samples:
        session.tell(f"{NESTED}, {count:,} events")
        found = _ask(session, "joined", count, subscriptions=conditions, condition=condition)
        spent[count], plan = found.seconds, short_plan(found.plan)
    wanted = session.scale.join_events
    is_whole = wanted in spent
    # The cost that does not grow with the events weighs least in the largest sample; others would make the join look slower.
    seconds = spent[wanted] if is_whole else wanted * spent[max(spent)] / max(spent)
    session.record_runs(
        "nested-loop join" if is_whole else "nested-loop join, extrapolated",
        NESTED,
        seconds,
        "s",
        **_size(session.scale),
        **{f"seconds_for_{count}_events": taken for count, taken in spent.items()},
        plan=plan,
    )
    return seconds


def _hash_join(session: SparkBenchSession, conditions: str, own: dict[str, Timed]) -> float:
    """Record the seconds of a join that knows which attributes are in every subscription."""
    scale = session.scale
    condition = _condition(scale.workload, scale.workload.fixed)
    session.tell(HASHED)
    found = _ask(session, "joined", scale.join_events, subscriptions=conditions, condition=condition)
    _check(f"the join sent {found.rows:,} notifications, and `match` {own}", own, found.rows)
    _record(session, "hash join", HASHED, found, plan=short_plan(found.plan))
    return found.seconds


def _join_plan(session: SparkBenchSession, own: dict[str, Timed]) -> Timed:
    """Record the seconds of `match` by the plan `join`, from the index that was made of templates."""
    scale, index = session.scale, str(session.folder / "joined-templates")
    session.tell("match, plan join")
    usual = session.two.match(_events(session, scale.join_events), index)
    found = _ask(session, "join_plan", scale.join_events, index=index)
    _check(f"the plan `join` sent {found.rows:,} notifications, and the usual one {own}", own, found.rows)
    _record(session, "match, index there already", "index", usual)
    _record(session, "match, plan join", "an index's subscriptions", found, plan=short_plan(found.plan))
    return found


def _ask(session: SparkBenchSession, task: str, count: int, **arguments: Any) -> Timed:
    """Return the answer of a task with `count` events, after a run with few."""
    few = min(session.scale.join_samples) // 2
    session.two.ask(task, Timed, events=_events(session, few), **arguments)
    return session.two.ask(task, Timed, events=_events(session, count), **arguments)


def _check(reason: str, own: dict[str, Timed], rows: int) -> None:
    if {run.rows for run in own.values()} != {rows}:
        raise SparkError(reason)


def _record(session: SparkBenchSession, name: str, of: str, run: Timed, **plan: str) -> None:
    size = _size(session.scale)
    session.record_runs(name, of, run.seconds, "s", notifications=run.rows, **size, **plan)


def _size(scale: Any) -> dict[str, float]:
    return {"subscriptions": scale.joined, "events": scale.join_events}


def _condition(parameters: Parameters, fixed: int) -> str:
    """Return the join's condition. The first `fixed` attributes are known to be in every subscription."""
    names = names_of(parameters.names)
    equal = [f"e.{name} = s.{name}" for name in names[:fixed]]
    return " and ".join([*equal, *(f"(s.{name} is null or e.{name} = s.{name})" for name in names[fixed:])])


def _events(session: SparkBenchSession, count: int) -> str:
    """Return a folder with the first `count` events."""
    folder = session.folder / f"join-events-{count}"
    if folder.exists():
        return str(folder)
    parameters = session.scale.workload
    return write_table(event_table(Workload(parameters).events(0, count), parameters.names), folder)


def short_plan(plan: str) -> str:
    """Return a physical plan without its columns' numbers and without how the tables came into memory, long lines cut."""
    lines = []
    for line in plan.splitlines():
        told = re.sub(r"#\d+L?|, \[plan_id=\d+\]", "", line.rstrip())
        operator = told.lstrip(" :+-*()0123456789")
        if operator and not operator.startswith(_LEFT_OUT):
            lines.append(told if len(told) <= _WIDTH else f"{told[:_WIDTH]}…")
    return "\n".join(lines)
