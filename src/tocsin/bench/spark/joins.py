"""What a user would write without Tocsin: a join of events with a table of subscriptions."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from tocsin.bench.spark.answers import Joined, Timed
from tocsin.bench.spark.inputs import write_table
from tocsin.bench.spark.session import Session
from tocsin.model.errors import SparkError
from tocsin.workloads.le_subscribe import Parameters, Workload
from tocsin.workloads.numbered import names_of
from tocsin.workloads.tabular import conditions_table, event_table, text_table

__all__ = ["joins", "short_plan"]

NESTED, HASHED = "nested loop", "hash join on the fixed attributes"
_WIDTH: Final = 100  # characters of a plan's line
_LEFT_OUT: Final = ("== Physical Plan", "InMemoryRelation", "ColumnarToRow", "FileScan")


def joins(session: Session) -> None:
    """Compare `match`, the making of its index included, with two joins on the same events and subscriptions."""
    scale = session.scale
    workload = Workload(scale.workload)
    session.tell("writing the tables")
    texts = write_table(text_table(workload.subscriptions(0, scale.joined)), session.folder / "texts")
    rows = conditions_table(workload.subscriptions(0, scale.joined), scale.workload.names)
    conditions = write_table(rows, session.folder / "conditions")
    events = _events(session, scale.join_events)
    index = str(session.folder / "joined")
    first = _events(session, min(scale.join_samples) // 2)
    session.tell("warming up")
    session.two.ask("from_texts", Timed, events=first, subscriptions=texts, folder=index)
    session.tell("match")
    own = session.two.ask("from_texts", Timed, events=events, subscriptions=texts, folder=index)
    size = {"subscriptions": scale.joined, "events": scale.join_events}
    session.record("match, index included", "match", own.seconds, "s", notifications=own.rows, **size)
    nested, nested_plan, spent = _nested_loop(session, first, conditions)
    is_whole = scale.join_events in spent
    session.record(
        "nested-loop join" + ("" if is_whole else ", extrapolated"),
        NESTED,
        nested,
        "s",
        **size,
        **{f"seconds_for_{count}_events": seconds for count, seconds in spent.items()},
        plan=nested_plan,
    )
    condition = _condition(scale.workload, scale.workload.fixed)
    session.two.ask("joined", Joined, events=first, subscriptions=conditions, condition=condition)
    session.tell(HASHED)
    hashed = session.two.ask("joined", Joined, events=events, subscriptions=conditions, condition=condition)
    if hashed.rows != own.rows:
        raise SparkError(f"`match` told {own.rows:,} notifications, and the join {hashed.rows:,}")
    session.record(
        HASHED, HASHED, hashed.seconds, "s", notifications=hashed.rows, **size, plan=short_plan(hashed.plan)
    )
    session.record("faster than the join", NESTED, nested / own.seconds, "times")
    session.record("faster than the join", HASHED, hashed.seconds / own.seconds, "times")


def _nested_loop(session: Session, first: str, conditions: str) -> tuple[float, str, dict[int, float]]:
    """Return the seconds for all events, the plan, and the seconds for those numbers of events that were measured."""
    condition = _condition(session.scale.workload, 0)
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
    if wanted in spent:
        return spent[wanted], plan, spent
    # A straight line through what was measured, so that what does not grow with the events is counted once.
    slope, fixed = np.polyfit(list(spent), list(spent.values()), 1)
    return float(slope * wanted + max(fixed, 0.0)), plan, spent


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
