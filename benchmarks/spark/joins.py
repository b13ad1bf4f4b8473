"""What a user would write without Tocsin: a join of events with a table of subscriptions. And the join that AMKH makes."""

from __future__ import annotations

import re
from typing import Any, Final

from benchmarks.lesubscribe.workload import Parameters, Workload
from benchmarks.spark.answers import Joined, Timed
from benchmarks.spark.inputs import write_table
from benchmarks.spark.scales import Scale
from benchmarks.spark.session import Session
from benchmarks.workloads.tabular import conditions_table, event_table, text_table
from tocsin.model.errors import SparkError
from tocsin.replay.numbered import names_of

NESTED: Final = "nested loop"
HASHED: Final = "hash join on the fixed attributes"
PLANNED: Final = "plan join"
_WIDTH: Final = 100  # characters of a plan's line
_LEFT_OUT: Final = ("== Physical Plan", "InMemoryRelation", "ColumnarToRow", "FileScan")


def joins(session: Session) -> None:
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
            session.record("faster than the join", f"{join}; {way}", seconds / run.seconds, "times")


def _matches(session: Session) -> dict[str, Timed]:
    """Record what `match` takes from texts, and from templates."""
    scale = session.scale
    session.tell("writing the tables")
    texts = text_table(Workload(scale.workload).subscriptions(0, scale.joined))
    asked: dict[str, tuple[str, dict[str, Any]]] = {
        "texts": ("from_texts", {"subscriptions": write_table(texts, session.folder / "texts")}),
        "templates": ("from_templates", {"subscriptions": scale.joined, "workload": scale.workload}),
    }
    found = {}
    for way, (task, arguments) in asked.items():
        session.tell(f"match, subscriptions from {way}")
        place = {"folder": str(session.folder / f"joined-{way}"), **arguments}
        session.two.ask(task, Timed, events=_events(session, min(scale.join_samples) // 2), **place)
        found[way] = session.two.ask(task, Timed, events=_events(session, scale.join_events), **place)
        session.record(
            "match, index included",
            way,
            found[way].seconds,
            "s",
            notifications=found[way].rows,
            **_size(scale),
        )
    return found


def _nested_loop(session: Session, conditions: str) -> float:
    """Record the seconds for all events; they are extrapolated from what few take, unless all were measured."""
    condition = _condition(session.scale.workload, 0)
    first = _events(session, min(session.scale.join_samples) // 2)
    session.two.ask("joined", Joined, events=first, subscriptions=conditions, condition=condition)
    spent: dict[int, float] = {}
    plan = ""
    for count in session.scale.join_samples:
        session.tell(f"{NESTED}, {count:,} events")
        sample = _events(session, count)
        found = session.two.ask(
            "joined", Joined, events=sample, subscriptions=conditions, condition=condition
        )
        spent[count], plan = found.seconds, short_plan(found.plan)
    wanted = session.scale.join_events
    is_whole = wanted in spent
    # What does not grow with the events weighs least in the largest sample: others would make the join look slower.
    seconds = spent[wanted] if is_whole else wanted * spent[max(spent)] / max(spent)
    session.record(
        "nested-loop join" if is_whole else "nested-loop join, extrapolated",
        NESTED,
        seconds,
        "s",
        **_size(session.scale),
        **{f"seconds_for_{count}_events": taken for count, taken in spent.items()},
        plan=plan,
    )
    return seconds


def _hash_join(session: Session, conditions: str, own: dict[str, Timed]) -> float:
    """Record the seconds of a join that knows which attributes are in every subscription."""
    scale = session.scale
    condition = _condition(scale.workload, scale.workload.fixed)
    first = _events(session, min(scale.join_samples) // 2)
    session.two.ask("joined", Joined, events=first, subscriptions=conditions, condition=condition)
    session.tell(HASHED)
    events = _events(session, scale.join_events)
    found = session.two.ask("joined", Joined, events=events, subscriptions=conditions, condition=condition)
    if {run.rows for run in own.values()} != {found.rows}:
        raise SparkError(f"the join told {found.rows:,} notifications, and `match` {own}")
    session.record(
        "hash join",
        HASHED,
        found.seconds,
        "s",
        notifications=found.rows,
        **_size(scale),
        plan=short_plan(found.plan),
    )
    return found.seconds


def _join_plan(session: Session, own: dict[str, Timed]) -> Timed:
    """Record the seconds of `match` by the plan `join`, from the index that was made of templates."""
    scale = session.scale
    session.tell("match, plan join")
    index = str(session.folder / "joined-templates")
    session.two.ask("join_plan", Joined, events=_events(session, min(scale.join_samples) // 2), index=index)
    events = _events(session, scale.join_events)
    usual = session.two.ask("matched", Timed, events=events, index=index)
    found = session.two.ask("join_plan", Joined, events=events, index=index)
    if {run.rows for run in own.values()} != {found.rows}:
        raise SparkError(f"the plan `join` told {found.rows:,} notifications, and the usual one {own}")
    size = {"notifications": found.rows, **_size(scale)}
    session.record("match, index there already", "index", usual.seconds, "s", **size)
    session.record(
        "match, plan join",
        "an index's subscriptions",
        found.seconds,
        "s",
        **size,
        plan=short_plan(found.plan),
    )
    return Timed(found.seconds, found.rows)


def _size(scale: Scale) -> dict[str, float]:
    return {"subscriptions": scale.joined, "events": scale.join_events}


def _condition(parameters: Parameters, fixed: int) -> str:
    """Return the join's condition. The first `fixed` attributes are known to be in every subscription."""
    names = names_of(parameters.names)
    equal = [f"e.{name} = s.{name}" for name in names[:fixed]]
    return " and ".join([*equal, *(f"(s.{name} is null or e.{name} = s.{name})" for name in names[fixed:])])


def _events(session: Session, count: int) -> str:
    """Return a folder with so many of the events."""
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
