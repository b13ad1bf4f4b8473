"""The generator with the parameters of OpIndex's table 3, and clauses over its attributes, read as CNF or as DNF (7.6)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.workloads.blocks import Blocks, NumberedWorkload, Ragged, check_parameters
from benchmarks.workloads.distributions import Choice, zipf
from tocsin.matching.encoding.codes import Op
from tocsin.replay.numbered import NumberedClauses, NumberedEvents, NumberedSubscriptions

_CLAUSES = 2


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """Table 3, with its symbols. The defaults are those in bold there or, where that is lost, the likeliest."""

    attributes: int = 20_000  # d
    most_predicates: int = 8  # Gamma max: a subscription has 1 to so many, on different attributes
    most_pairs: int = 40  # m: an event has 1 to so many pairs,
    full_events: bool = False  # or just so many
    equal_share: float = 0.4  # theta 1: of predicates `=`; the rest are half `<=`, half `>=`
    values: int = 50  # sigma: constants and values are 1 to so many
    zipf: float = 0.0  # exponent for attributes and constants, of subscriptions and events alike

    def __post_init__(self) -> None:
        faults = {
            "a subscription needs a predicate, and an event a pair": min(
                self.most_predicates, self.most_pairs, self.values
            )
            < 1,
            "a subscription has more predicates than there are attributes": self.most_predicates
            > self.attributes,
            "an event has more pairs than there are attributes": self.most_pairs > self.attributes,
            "a share is from 0 to 1": not 0 <= self.equal_share <= 1,
            "Zipf's exponent is not negative": not self.zipf >= 0,
        }
        check_parameters(faults)


class Workload(NumberedWorkload):
    """Subscriptions and events drawn by `parameters`; the same seed draws the same ones, whatever the batches.

    Under Zipf, attribute 0 and value 1 are the likeliest on both sides.

    >>> workload = Workload(Parameters(), seed=7)
    >>> [len(batch.ids) for batch in workload.subscriptions(0, 100_000)]
    [65536, 34464]
    """

    parameters: Parameters
    event_block = 1 << 12

    def draw_predicates(self, random: Generator, rows: int, width: int) -> tuple[NDArray[Any], ...]:
        """Return the attributes, operators, lows and highs of rows of predicates, a row's on different attributes."""
        p = self.parameters
        attributes = self._attributes.distinct(random, rows, width)
        constants = self._values.draw(random, (rows, width)) + np.int32(1)
        kinds = random.random((rows, width), dtype=np.float32)
        is_at_most = kinds < p.equal_share + (1 - p.equal_share) / 2
        ops = np.where(kinds < p.equal_share, Op.EQ, np.where(is_at_most, Op.LE, Op.GE)).astype(np.int8)
        lows = np.where(ops == Op.LE, 1, constants).astype(np.int32)
        highs = np.where(ops == Op.GE, p.values, constants).astype(np.int32)
        return attributes, ops, lows, highs

    @cached_property
    def _attributes(self) -> Choice:
        return zipf(self.parameters.attributes, self.parameters.zipf)

    @cached_property
    def _values(self) -> Choice:
        return zipf(self.parameters.values, self.parameters.zipf)

    def _draw_subscriptions(self, random: Generator, count: int) -> Ragged:
        width = self.parameters.most_predicates
        sizes = random.integers(1, width + 1, count)
        return Ragged.first(sizes, *self.draw_predicates(random, count, width))

    def _draw_events(self, random: Generator, count: int) -> Ragged:
        p = self.parameters
        sizes = random.integers(p.most_pairs if p.full_events else 1, p.most_pairs + 1, count)
        attributes = self._attributes.distinct(random, count, p.most_pairs)
        values = self._values.draw(random, (count, p.most_pairs)) + np.int32(1)
        return Ragged.first(sizes, attributes, values)


class ClauseParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of clauses and of their predicates; predicates and events are drawn as table 3 says."""

    most_clauses: int = 5  # a subscription has 1 to so many
    clause_predicates: int = 4  # a clause has 1 to so many
    predicates: Parameters = Parameters()

    def __post_init__(self) -> None:
        if min(self.most_clauses, self.clause_predicates) < 1:
            raise ValueError("a subscription needs a clause, and a clause a predicate")
        if self.most_clauses * self.clause_predicates > self.predicates.attributes:
            raise ValueError("a subscription has more predicates than there are attributes")


class ClauseWorkload:
    """Subscriptions of clauses, all of a subscription's predicates on different attributes; seeded as table 3's are."""

    def __init__(self, parameters: ClauseParameters, seed: int = 1) -> None:
        self.parameters = parameters
        self._base = Workload(parameters.predicates, seed)
        self._clauses = Blocks((seed, _CLAUSES), self._draw)

    def subscriptions(self, begin: int, end: int, *, batch: int = 1 << 16) -> Iterator[NumberedClauses]:
        """Return the subscriptions from number `begin` to `end`, in batches."""
        for first, rows in self._clauses.batches(begin, end, batch):
            numbers, *cells = rows.columns
            ids = np.arange(first, first + len(rows), dtype=np.int64)
            # A clause begins with each subscription, and where its number changes within one.
            is_first = np.ones(len(numbers), dtype=np.bool_)
            is_first[1:] = numbers[1:] != numbers[:-1]
            is_first[rows.offsets[:-1]] = True
            begins = np.flatnonzero(is_first)
            offsets = np.searchsorted(begins, rows.offsets)
            clauses = NumberedSubscriptions(begins, np.append(begins, len(numbers)), *cells)
            yield NumberedClauses(ids, offsets, clauses)

    def events(self, begin: int, end: int, *, batch: int = 1_000) -> Iterator[NumberedEvents]:
        """Return the events from number `begin` to `end`, in batches."""
        return self._base.events(begin, end, batch=batch)

    def _draw(self, random: Generator, count: int) -> Ragged:
        p = self.parameters
        clauses = random.integers(1, p.most_clauses + 1, (count, 1, 1))
        sizes = random.integers(1, p.clause_predicates + 1, (count, p.most_clauses, 1))
        numbers, places = np.arange(p.most_clauses)[:, None], np.arange(p.clause_predicates)
        is_cell = ((numbers < clauses) & (places < sizes)).reshape(count, -1)
        columns = self._base.draw_predicates(random, count, is_cell.shape[1])
        clause = np.broadcast_to(numbers, (count, p.most_clauses, p.clause_predicates)).reshape(count, -1)
        return Ragged.where(is_cell, clause.astype(np.int32), *columns)
