"""Choosing and making multi-attribute tables, for the matchers that have them."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import Final

import numpy as np
from msgspec import Struct, convert

from tocsin.matching.conjunction_store.state import StoreCounter
from tocsin.matching.encoding.codes import Keys
from tocsin.matching.le_subscribe._kernels import greedy
from tocsin.matching.le_subscribe.state import WIDEST, State
from tocsin.structures import hash_index
from tocsin.structures.array_types import Float64s, Int32s, zeros
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import new_hash_index

Schema = tuple[int, ...]
"""The fields of a table, ascending."""

Correlations = Mapping[Schema, float]
"""The factor of correlation by schema: the probability of its keys, over that of independent values."""

_INDEPENDENT: Final[Correlations] = {}
_ROOM: Final = 1 << 16  # candidates, to begin with


class Costs(Struct, frozen=True):
    """The cost of a table, in checks of one conjunction, and in bytes.

    The figures are measured: a check takes a nanosecond; a look-up in a table that fits into the caches a tenth of
    a microsecond, in one that does not, 0.6 to 0.8 microseconds.
    """

    table: float = 40.0  # K_r: to see whether an event has a table's attributes
    attribute: float = 30.0  # K_h: to hash and to look up, for each attribute
    misses: float = 500.0  # the cache misses of a look-up, in a table too large for the caches
    cached: float = 16_384.0  # keys of a table from which on every look-up misses
    create: float = 1.5  # a table is made if it saves so many times its cost
    delete: float = 0.5  # and given up if it saves less than so many times its cost
    key: float = 120.0  # K_e: bytes of an access predicate and its first chunk

    def of(self, width: int, keys: float = 0.0) -> float:
        """Return the cost per event of a table of this many attributes and keys."""
        return self.table + self.attribute * width + self.misses * min(keys / self.cached, 1.0)

    def figures(self, space: float, scale: float) -> Float64s:
        """Return the costs by `CostPlace`; a sampled conjunction stands for `scale` others."""
        costs = (self.table, self.attribute, self.create, space, self.key, scale, self.misses, self.cached)
        return np.array(costs, dtype=np.float64)


EAGER: Final = Costs(table=0.02, attribute=0.02, misses=0.0)
"""Costs so low that tables are made and dropped at the least cause."""


def read_costs(given: Costs | Mapping[str, float] | None) -> Costs:
    """Return costs that are given as such, by name, or not at all."""
    return given if isinstance(given, Costs) else convert(dict(given or {}), Costs)


def checked_width(max_attributes: int) -> int:
    """Return how many attributes a table may have; raise `ValueError` if no table can have so many."""
    if not 1 <= max_attributes <= WIDEST:
        raise ValueError(f"max_attributes is between 1 and {WIDEST}, not {max_attributes}")
    return max_attributes


def new_sample(size: int) -> greedy.Sample:
    """Return an empty sample with room for `size` conjunctions."""
    none = np.zeros(1, dtype=np.int64)
    return zeros(
        greedy.Sample, size, fields=greedy.MOST, slots=greedy.MOST, probability=greedy.MOST, count=none
    )


def schemas_for(
    state: State,
    sample: greedy.Sample,
    widest: int,
    costs: Costs,
    *,
    space: float = np.inf,
    fresh: bool = False,
    most: int = 64,
    correlations: Correlations = _INDEPENDENT,
) -> dict[Schema, float]:
    """Return up to `most` schemas whose tables pay off for a sample, the best first, each with its correlation.

    `space` bounds what they may take. Schemas that have a table are left out, unless the choice is made `fresh`.
    """
    held = int(state.store.counters[StoreCounter.LIVE])
    stands_for = float(sample.weight[: sample.count[0]].sum()) or 1.0
    known = np.zeros((0, 2), dtype=np.int64) if fresh else _schema_keys(state)
    figures = costs.figures(space, max(held / stands_for, 1.0))
    return choose_schemas(
        known, sample, widest, figures, state.fields.equalities, most=most, correlations=correlations
    )


def choose_schemas(
    known: Keys,
    sample: greedy.Sample,
    widest: int,
    figures: Float64s,
    distinct: Int32s,
    *,
    most: int = 64,
    correlations: Correlations = _INDEPENDENT,
) -> dict[Schema, float]:
    """Return up to `most` schemas that are not known and pay off, by costs in checks and the constants of each field."""
    chosen = np.zeros((most, 2), dtype=np.int64)
    before = sample.current.copy()
    room = _ROOM
    while True:
        candidates = _candidates(distinct, correlations, room)
        count = greedy.choose_tables(known, sample, candidates, widest, figures, chosen)
        if count >= 0:
            return {
                _fields(a, b): greedy.correlation_of(candidates, a, b) for a, b in chosen[:count].tolist()
            }
        sample.current[:] = before
        room *= 4


def set_correlations(state: State, correlations: Correlations) -> None:
    """Set the correlation of every table."""
    candidates = _candidates(state.fields.equalities, correlations, 2 * len(correlations) + 64)
    rows = np.flatnonzero(state.tables.width[: state.tables.used[0]])
    for row, (a, b) in zip(rows.tolist(), _schema_keys(state).tolist(), strict=True):
        state.tables.correlation[row] = greedy.correlation_of(candidates, a, b)


def _candidates(distinct: Int32s, correlations: Correlations, room: int) -> greedy.Candidates:
    """Return room for so many candidates; schemas of known correlation are entered already."""
    candidates = greedy.Candidates(
        new_hash_index(2, capacity=room),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room, dtype=np.uint8),
        np.ones(room),
        distinct,
    )
    for schema, correlation in correlations.items():
        entry = hash_index.insert(candidates.schemas, *schema_key(schema), 0)
        candidates.correlation[entry] = correlation
    return candidates


def subsets(equalities: int, widest: int) -> int:
    """Return how many schemas of two to `widest` attributes a conjunction with so many equalities has."""
    return sum(comb(min(equalities, greedy.MOST), width) for width in range(2, widest + 1))


def add_table(state: State, schema: Schema, correlation: float = 1.0) -> State:
    """Return the state with a new, empty table over these fields."""
    tables = state.tables
    free = np.flatnonzero(tables.width[: tables.used[0]] == 0)
    number = int(free[0]) if len(free) else int(tables.used[0])
    tables = grown(tables, ("fields", "width", "members", "correlation"), number + 1)
    tables.fields[number, : len(schema)] = schema
    tables.width[number] = len(schema)
    tables.members[number] = 0
    tables.correlation[number] = correlation
    tables.used[0] = max(int(tables.used[0]), number + 1)
    return state._replace(tables=tables)


def _schema_keys(state: State) -> Keys:
    """Return the schemas of all tables, as `choose_tables` writes them."""
    tables = state.tables
    schemas = [
        tuple(tables.fields[row, : abs(int(tables.width[row]))].tolist())
        for row in np.flatnonzero(tables.width[: tables.used[0]]).tolist()
    ]
    return np.array([schema_key(schema) for schema in schemas], dtype=np.int64).reshape(-1, 2)


def schema_key(schema: Schema) -> tuple[int, int]:
    """Return a schema as `choose_tables` reads it."""
    padded = [*schema, *[greedy.NO_FIELD] * (WIDEST - len(schema))]
    return (padded[0] << 32) | padded[1], -1 if len(schema) <= 2 else (padded[2] << 32) | padded[3]


def _fields(a: int, b: int) -> Schema:
    halves = [a] if b == -1 else [a, b]
    found = [part for half in halves for part in (half >> 32, half & 0xFFFFFFFF)]
    return tuple(field for field in found if field != greedy.NO_FIELD)
