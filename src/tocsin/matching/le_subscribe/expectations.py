"""Probabilities of equalities together, from statistics of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Keys, Op, field_of, key_of
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.le_subscribe._kernels.greedy import Sample
from tocsin.matching.le_subscribe._kernels.predicates import PRIOR
from tocsin.matching.le_subscribe.state import NO_SLOT, WIDEST, ClusterTotal, State
from tocsin.matching.le_subscribe.tables import Schema
from tocsin.matching.statistics import Statistics
from tocsin.matching.statistics.encoded import KINDS, place_of
from tocsin.matching.statistics.joint import Group
from tocsin.model.terms import Literal
from tocsin.structures import hash_index
from tocsin.structures.array_types import Float64s, Int32s

_SAMPLED: Final = 16_384  # conjunctions that are sampled for all groups,
_ROWS: Final = 128  # and of those for each group
_LEAST: Final = 1e-6  # a correlation: values never seen together may still meet


def joint_probabilities(statistics: Statistics, vocabulary: Vocabulary, state: State) -> Float64s:
    """Return the probability of each access predicate that is a frequent combination; -1 for the others."""
    found = np.full(len(state.access.members), -1.0)
    for row in np.flatnonzero(state.tables.width[: state.tables.used[0]]).tolist():
        schema = tuple(state.tables.fields[row, : abs(int(state.tables.width[row]))].tolist())
        group = _group(vocabulary, schema)
        joint = statistics.groups.get(group)
        for combination, count in joint.frequent.items() if joint is not None else ():
            slots = dict(_slots(vocabulary, state, group, combination))
            if slots.keys() == set(schema):
                entry = _entry(state, [slots[field] for field in schema])
                if entry >= 0:
                    found[entry] = count / statistics.events
    return found


def known_correlations(
    statistics: Statistics, vocabulary: Vocabulary, state: State, sample: Sample
) -> dict[Schema, float]:
    """Return how many times more probable the sampled conjunctions' equalities are together than if independent.

    That is the average over the conjunctions, for every schema that is a group of the statistics.
    """
    step = max(1, int(sample.count[0]) // _SAMPLED)
    places = np.arange(0, int(sample.count[0]), step)
    attributes = sample.fields[places] // FIELDS
    attributes[np.arange(attributes.shape[1]) >= sample.equalities[places, None]] = -1
    trust = state.totals[ClusterTotal.EVENTS] / (
        state.totals[ClusterTotal.EVENTS] + PRIOR * state.totals[ClusterTotal.WEIGHT]
    )
    constants: dict[int, Literal] = {}
    sums: dict[Schema, tuple[float, float]] = {}
    for group in statistics.groups:
        rows, columns = _rows_with(attributes, [vocabulary.names.codes.get(path, -2) for path in group])
        at = places[rows, None]
        apart = sample.probability[at, columns].prod(axis=1)
        fields, slots = sample.fields[at, columns].tolist(), sample.slots[at, columns].tolist()
        weights = sample.weight[places[rows]].tolist()
        for schema, asked, chance, weight in zip(fields, slots, apart.tolist(), weights, strict=True):
            wanted = tuple(_constant(vocabulary, state, slot, constants) for slot in asked)
            together = statistics.combination(group, wanted)
            if together is not None:
                key = tuple(sorted(schema))
                likely, independent = sums.get(key, (0.0, 0.0))
                together = trust * together + (1.0 - trust) * chance
                sums[key] = likely + weight * together, independent + weight * chance
    return {schema: max(together / apart, _LEAST) for schema, (together, apart) in sums.items()}


def _rows_with(attributes: Int32s, codes: Sequence[int]) -> tuple[Keys, Keys]:
    """Return some of the rows that have all of these attributes, and the columns of each that they are in."""
    held = [attributes == code for code in codes]
    rows = np.flatnonzero(np.logical_and.reduce([one.any(axis=1) for one in held]))
    rows = rows[:: max(1, len(rows) // _ROWS)]
    return rows, np.stack([one[rows].argmax(axis=1) for one in held], axis=1)


def _constant(vocabulary: Vocabulary, state: State, slot: int, known: dict[int, Literal]) -> Literal:
    """Return the constant of an equality, which `known` keeps."""
    found = known.get(slot)
    if found is None:
        tag, key, _ = state.predicates.entries.keys[slot].tolist()
        _, field = place_of(vocabulary, tag)
        found = known[slot] = Literal(vocabulary.constant(field, key), KINDS[field])
    return found


def _slots(
    vocabulary: Vocabulary, state: State, group: Group, combination: Sequence[Literal]
) -> Iterator[tuple[int, int]]:
    """Yield the field and slot of each equality of a stored combination."""
    for path, constant in zip(group, combination, strict=True):
        field = vocabulary.names.codes[path] * FIELDS + field_of(constant.value)
        key = key_of(constant.value)
        if key is None:
            key = vocabulary.symbols.codes.get(constant.value, -1)  # type: ignore[arg-type]
        slot = hash_index.find(state.predicates.entries, (Op.EQ << FIELD_BITS) | field, key, key)
        if slot >= 0:
            yield field, int(slot)


def _entry(state: State, slots: Sequence[int]) -> int:
    """Return the access predicate of these slots, or -1."""
    padded = [*slots, *[NO_SLOT] * (WIDEST - len(slots))]
    a, b = (padded[0] << 32) | padded[1], -1 if len(slots) <= 2 else (padded[2] << 32) | padded[3]
    return int(hash_index.find(state.access.entries, a, b, 0))


def _group(vocabulary: Vocabulary, schema: Schema) -> Group:
    return tuple(sorted(vocabulary.names.value(field // FIELDS) for field in schema))
