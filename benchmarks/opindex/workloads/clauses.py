"""CNF and DNF (OpIndex 7.6): clauses over table 3's attributes, read as one form or as the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.random import Generator

from benchmarks.opindex.workloads import table3
from benchmarks.workloads.blocks import Blocks, Ragged
from tocsin.replay.numbered import NumberedClauses, NumberedEvents

_CLAUSES = 2


class ClauseParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers of clauses and of their predicates; predicates and events are drawn as table 3 says."""

    most_clauses: int = 5  # a subscription has 1 to so many
    clause_predicates: int = 4  # a clause has 1 to so many
    predicates: table3.Parameters = table3.Parameters()

    def __post_init__(self) -> None:
        if min(self.most_clauses, self.clause_predicates) < 1:
            raise ValueError("a subscription needs a clause, and a clause a predicate")
        if self.most_clauses * self.clause_predicates > self.predicates.attributes:
            raise ValueError("a subscription has more predicates than there are attributes")


class ClauseWorkload:
    """Subscriptions of clauses, all of a subscription's predicates on different attributes; seeded as table 3's are."""

    def __init__(self, parameters: ClauseParameters, seed: int = 1) -> None:
        self.parameters = parameters
        self._base = table3.Workload(parameters.predicates, seed)
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
            yield NumberedClauses(ids, offsets, np.append(begins, len(numbers)), *cells)

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
