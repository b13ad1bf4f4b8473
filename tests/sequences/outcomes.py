"""Putting texts and events through a runner, and what came out in a form that can be compared and read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from tocsin.engine.event_sources import check_no_faults, require_columns, timed_rows
from tocsin.language.parsing.parser import parse_template
from tocsin.matching import IdArray
from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model import Event, Sequence, Value
from tocsin.model.ticks import StreamTicks, TimeUnit
from tocsin.model.values import kind_of
from tocsin.sequences.compiling.compiler import CompiledSequence, compile_sequence
from tocsin.sequences.matcher import SequenceMatcher
from tocsin.sequences.matches import SequenceMatches, Step
from tocsin.sequences.oracle import OracleSequenceMatcher

Outcome: TypeAlias = tuple[object, ...]
"""A subscription, the start and end of its match, the events of each step, and the values."""


def ids(*numbers: int) -> IdArray:
    return np.array(numbers, dtype=np.int64)


def query_of(text: str) -> Sequence:
    """The sequence, or the template of sequences, that a text says."""
    return cast("Sequence", parse_template(text)[0])


def compiled(
    source: str | Sequence, ticks: Mapping[str, int] | None = None, *, full: bool = True
) -> CompiledSequence:
    """Compile a text, a template or a query."""
    query = source if isinstance(source, Sequence) else query_of(source)
    return compile_sequence(query, ticks or {}, full=full)


def outcomes(matches: SequenceMatches) -> list[tuple[int, Outcome]]:
    """Return the matches, each with the row of the event that completed it."""
    completed = [matches.match(number) for number in range(len(matches))]
    return [
        (
            int(matches.rows[number]),
            (
                int(matches.subscriptions[number]),
                int(matches.starts[number]),
                int(matches.ends[number]),
                tuple(_step(step) for step in each.steps),
                kinds_and_values(each.values),
            ),
        )
        for number, each in enumerate(completed)
    ]


def table_rows(table: pa.Table) -> TimedRows:
    """A table's rows as events of the stream `s`; the column `t` has their times, in order."""
    rows = timed_rows(require_columns(table, "s"), "t", None, StreamTicks(unit=TimeUnit.TICKS))
    check_no_faults(rows.faults)
    return rows


def found(
    texts: str | Iterable[str], events: Iterable[Event], runner: SequenceMatcher | None = None
) -> Counter[Outcome]:
    """Return the matches of subscriptions, numbered from 0, over events in order."""
    runner = runner or OracleSequenceMatcher()
    for number, text in enumerate([texts] if isinstance(texts, str) else texts):
        runner.add(ids(number), compiled(text), {})
    bag: Counter[Outcome] = Counter()
    for event in events:
        bag.update(outcome for _, outcome in outcomes(runner.process(TimedBatch([event]))))
    return bag


def shown(bag: Counter[Outcome]) -> list[str]:
    """The matches as `e1e3[1,3]`: their events and times, in order."""
    lines = []
    for (_, start, end, steps, _), times in bag.items():
        events = "".join(event[0] for step in steps for event in step[1])  # type: ignore[attr-defined]
        lines += [f"{events}[{start},{end}]"] * times
    return sorted(lines)


def values(bag: Counter[Outcome]) -> list[dict[str, object]]:
    """The values of each witness, in the order of their ends."""
    ordered = sorted(bag.elements(), key=lambda outcome: (outcome[2], outcome[1]))
    return [{name: value for name, (_, value) in outcome[4]} for outcome in ordered]  # type: ignore[attr-defined]


def event(id: str, end: int, start: int | None = None, stream: str = "stock", /, **data: Value) -> Event:
    return Event(id, data, stream, end if start is None else start, end)


def renamed(events: Iterable[Event], stream: str) -> list[Event]:
    return [replace(each, stream=stream) for each in events]


def _step(step: Step) -> tuple[object, ...]:
    chain = (step.first, step.last) if step.chain is None else step.chain
    return step.alias, tuple((e.id, e.start, e.end, kinds_and_values(e.attributes)) for e in chain)


def kinds_and_values(values: Mapping[str, Value | None]) -> tuple[object, ...]:
    """Values by name, each with its kind: `true` is not 1."""
    return tuple(
        (name, ("absent", None) if value is None else (kind_of(value).value, value))
        for name, value in sorted(values.items())
    )
