"""Figures of a matcher's subscriptions and events, by which a scheme is chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.amkh.choice import Coordinate, Figures
from tocsin.matching.amkh.state import MOST_MEMBERS, State, Total
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Keys, Op
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.structures.array_types import Bools, Float64s, Int64s

_KNOWN: Final = 1000.0
_REMEMBERED: Final = 256  # events
_ENOUGH: Final = 8  # clauses for each class, from which on an attribute has classes by its own constants
_LOWER: Final = (Op.GT, Op.GE)
_UPPER: Final = (Op.LT, Op.LE)
_ORDERED: Final = (Field.NUMBER, Field.STRING, Field.BOOLEAN, Field.TIMESTAMP)


class Clauses(NamedTuple):
    """The clauses of a sample of conjunctions, a row each."""

    conjunction: Keys  # which of the sample it is in
    field: Keys
    op: Keys
    low: Keys
    high: Keys
    is_equality: Bools


def recent(events: EncodedEvents) -> EncodedEvents:
    """Return the first few of these events, to be remembered."""
    count = min(len(events.offsets) - 1, _REMEMBERED)
    end = int(events.offsets[count])
    keys, lows, highs = (part[:end].copy() for part in (events.keys, events.lows, events.highs))
    return EncodedEvents(events.offsets[: count + 1].copy(), events.fields[:end].copy(), keys, lows, highs)


def clauses_of(expressions: Expressions) -> Clauses:
    """Return the clauses of conjunctions that may be hashed; a short list counts as an equality."""
    ops, fields = expressions.tags >> FIELD_BITS, expressions.tags & FIELD_MASK
    conjunction = np.repeat(np.arange(len(expressions.numbers)), np.diff(expressions.offsets))
    equal = (ops == Op.EQ) | (ops == Op.PRESENT)
    lists = np.flatnonzero(ops == Op.IN)
    if len(lists):
        which = expressions.which[lists]
        fields[lists] = expressions.fields[expressions.starts[which]]
        equal[lists] = np.diff(expressions.starts)[which] <= MOST_MEMBERS
    kept = (ops != Op.RESIDUAL) & (ops != Op.MISSING)
    return Clauses(
        conjunction[kept],
        fields[kept],
        ops[kept],
        expressions.lows[kept],
        expressions.highs[kept],
        np.asarray(equal[kept]),
    )


def figures_of(
    state: State, clauses: Clauses, count: int, seen: EncodedEvents | None
) -> tuple[dict[Hashable, Figures], list[list[Coordinate]]]:
    """Return the figures of all fields of `count` sampled conjunctions, and their coordinates."""
    presence = _presence(state)
    chances = _chances(clauses, seen)
    sample: list[dict[Hashable, bool]] = [{} for _ in range(count)]
    equal: dict[int, list[float]] = {}
    other: dict[int, list[float]] = {}
    for conjunction, field, is_equality, chance in zip(
        clauses.conjunction.tolist(),
        clauses.field.tolist(),
        clauses.is_equality.tolist(),
        chances.tolist(),
        strict=True,
    ):
        sample[conjunction][field] = sample[conjunction].get(field, False) or is_equality
        (equal if is_equality else other).setdefault(field, []).append(chance)
    known: dict[Hashable, Figures] = {}
    for field in equal.keys() | other.keys():
        others = int(state.fields.others[field])
        known[field] = Figures(
            max(float(state.fields.uses[field]) - others, float(field in equal)),
            others,
            max(float(presence[field]), 1e-9),
            _average(equal.get(field, []), 0.1),
            _average(other.get(field, []), 0.5),
        )
    return known, [[Coordinate(*one) for one in conjunction.items()] for conjunction in sample]


def _average(chances: list[float], otherwise: float) -> float:
    return sum(chances) / len(chances) if chances else otherwise


def _presence(state: State) -> Float64s:
    """Return the share of events with each field since it is in use; while these are few, of conjunctions."""
    events = state.totals[Total.EVENTS] - state.fields.since
    asked = state.fields.uses / max(int(state.store.counters[StoreCounter.LIVE]), 1)
    known = events >= _KNOWN * state.totals[Total.SHARE]
    return np.asarray(np.minimum(np.where(known, state.fields.seen / np.maximum(events, 1e-9), asked), 1.0))


def _chances(clauses: Clauses, seen: EncodedEvents | None) -> Float64s:
    """Return, of each clause, the share of values of its field that satisfy it: tried on events, or assumed."""
    # The more clauses ask for a value of a field, the more different values it is taken to have.
    fields, uses = np.unique(clauses.field, return_counts=True)
    chances = np.where(clauses.is_equality, 1.0 / (1.0 + uses[np.searchsorted(fields, clauses.field)]), 0.5)
    chances[~clauses.is_equality & (clauses.op == Op.BETWEEN)] = 0.3
    if seen is None or not len(seen.fields):
        return np.asarray(chances)
    order = np.argsort(seen.fields, kind="stable")
    sorted_fields = seen.fields[order]
    begins = np.searchsorted(sorted_fields, clauses.field, side="left").tolist()
    ends = np.searchsorted(sorted_fields, clauses.field, side="right").tolist()
    lows, highs, keys = seen.lows[order], seen.highs[order], seen.keys[order]
    pairs = Counter(zip(sorted_fields.tolist(), keys.tolist(), strict=True))
    for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if end - begin < _ENOUGH:
            continue
        low, high = lows[begin:end], highs[begin:end]
        op, first, second = int(clauses.op[i]), int(clauses.low[i]), int(clauses.high[i])
        if op == Op.EQ:
            chances[i] = pairs[int(clauses.field[i]), first] / (end - begin)
        elif op in _LOWER:
            chances[i] = float(np.mean(low >= first))
        elif op in _UPPER:
            chances[i] = float(np.mean(high <= first))
        elif op == Op.BETWEEN:
            chances[i] = float(np.mean((low >= first) & (high <= second)))
    return np.asarray(chances)


def cuts_of(clauses: Clauses, classes: int) -> tuple[Keys, dict[int, int]]:
    """Return the constants by which ranges fall into classes, and which row of them a field has of its own.

    A row has three parts of B - 1 constants, for clauses bounded below, above and on both sides. The first rows are
    for fields without one of their own, by kind.
    """
    if classes < 2:
        return np.zeros(1, dtype=np.int64), {}
    shape = np.full(len(clauses.op), -1)
    shape[np.isin(clauses.op, _LOWER)] = 0
    shape[np.isin(clauses.op, _UPPER)] = 1
    shape[clauses.op == Op.BETWEEN] = 2
    ranged = shape >= 0
    shape, field = shape[ranged], clauses.field[ranged]
    low, high = clauses.low[ranged], clauses.high[ranged]
    constant = np.where(shape == 2, (low >> 1) + (high >> 1), low)
    rows = [np.zeros((3, classes - 1), dtype=np.int64) for _ in range(FIELDS)]
    for kind in _ORDERED:
        for which in range(3):
            _fill(rows[kind], which, constant[(field % FIELDS == kind) & (shape == which)])
    own: dict[int, int] = {}
    fields, counts = np.unique(field, return_counts=True)
    for one in fields[counts >= _ENOUGH * classes].tolist():
        mine = field == one
        row = rows[one % FIELDS].copy()
        for which in range(3):
            _fill(row, which, constant[mine & (shape == which)])
        own[one] = len(rows)
        rows.append(row)
    return np.concatenate([row.ravel() for row in rows]), own


def _fill(row: Int64s, which: int, constants: Keys) -> None:
    """Write the constants that part others into classes of about equal size; if there are few, leave it."""
    parts = row.shape[1] + 1
    if len(constants) >= parts:
        ordered = np.sort(constants)
        row[which] = ordered[np.arange(1, parts) * len(ordered) // parts - 1]
