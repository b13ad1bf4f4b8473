"""Le Subscribe's workloads (Fabret and others, SIGMOD 2001, table 1): seeded, and streamed in batches of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.workloads.blocks import NumberedWorkload, Ragged, check_parameters
from tocsin.matching.encoding.codes import Op
from tocsin.replay.numbered import NumberedEvents, NumberedSubscriptions


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """Table 1, with its symbols, but for the numbers of subscriptions and events. Values are whole numbers, each as likely as any other of its range.

    The fixed attributes are the first of the names that subscriptions use. The other predicates of a
    subscription, and the other pairs of an event, are on names drawn anew each time, never the same twice.
    """

    names: int = 32  # n_t: names in all
    predicates: int = 5  # n_P: predicates in a subscription
    fixed_equal: int = 2  # n_P= fixed: predicates `=`, on the same attributes in every subscription
    fixed_at_most: int = 0  # n_P< fixed: predicates `<=`, likewise
    fixed_at_least: int = 0  # n_P> fixed: predicates `>=`, likewise
    free_ranges: int = 0  # of the other predicates, how many are `<=` or `>=`, not `=`
    lowest: int = 1  # l_P: the range of the constants
    highest: int = 35  # u_P
    pairs: int = 32  # n_A: pairs in an event
    fixed_pairs: int = 0  # n_A fixed: on the same attributes in every event
    event_lowest: int = 1  # l_A: the range of an event's values
    event_highest: int = 35  # u_A
    first_name: int = 0  # subscriptions use the names from this one on,
    last_name: int | None = None  # up to this one, or to the last
    fixed_values: int | None = None  # skew: so many values on subscriptions' fixed attributes
    event_fixed_values: int | None = None  # skew: so many values on these attributes in events

    def __post_init__(self) -> None:
        faults = {
            "`predicates` must be at least the fixed ones": self.free < 0,
            "`free_ranges` must be at most the predicates that are not fixed": self.free_ranges > self.free,
            "a subscription has more predicates than there are names": self.predicates > self.usable_names,
            "an event has more pairs than there are names": not self.fixed_pairs <= self.pairs <= self.names,
            "a range of values is empty": self.lowest > self.highest
            or self.event_lowest > self.event_highest,
            "the names that subscriptions use must be among all": not 0
            <= self.first_name
            <= self.first_name + self.usable_names
            <= self.names,
        }
        check_parameters(faults)

    @property
    def fixed(self) -> int:
        """Return how many predicates of a subscription are on fixed attributes."""
        return self.fixed_equal + self.fixed_at_most + self.fixed_at_least

    @property
    def free(self) -> int:
        """Return how many are not."""
        return self.predicates - self.fixed

    @property
    def usable_names(self) -> int:
        """Return how many names subscriptions use."""
        return (self.names if self.last_name is None else self.last_name) - self.first_name

    @property
    def domain(self) -> int:
        """Return how many values a constant may have."""
        return self.highest - self.lowest + 1


WORKLOADS: Final = {
    "W0": Parameters(),
    "W0 with ranges": Parameters(free_ranges=3),
    "W1": Parameters(free_ranges=1),
    "W2": Parameters(predicates=9, free_ranges=5),
    "W3": Parameters(last_name=16),
    "W4": Parameters(first_name=16),
    "W5": Parameters(),
    "W6": Parameters(fixed_values=2, event_fixed_values=2),
}
"""By name. The paper's numbers for W1 to W6 are lost; these have the shape that its text describes.

W0: two fixed equalities and three more. W0 with ranges: the three are `<=` or `>=`. W1: one of them is. W2: nine
predicates, five of them ranges. W3 to W4: the schema drifts from one half of the names to the other. W5 to W6:
the fixed attributes come down to two values, in subscriptions and in events.
"""


class Workload(NumberedWorkload):
    """Subscriptions and events drawn by `parameters`; the same seed draws the same ones, whatever the batches.

    >>> workload = Workload(WORKLOADS["W0"], seed=7)
    >>> [len(batch.ids) for batch in workload.subscriptions(0, 100_000)]
    [65536, 34464]
    """

    parameters: Parameters

    def _draw_subscriptions(self, random: Generator, count: int) -> Ragged:
        """Return the attributes, operators, lows and highs of a block of subscriptions, a row each."""
        p = self.parameters
        attributes = np.empty((count, p.predicates), dtype=np.int32)
        attributes[:, : p.fixed] = p.first_name + np.arange(p.fixed)
        others = _distinct(random, count, p.free, p.usable_names - p.fixed)
        attributes[:, p.fixed :] = p.first_name + p.fixed + others
        constants = random.integers(p.lowest, p.highest + 1, attributes.shape, dtype=np.int32)
        if p.fixed_values is not None:
            few = random.integers(p.lowest, p.lowest + p.fixed_values, (count, p.fixed), dtype=np.int32)
            constants[:, : p.fixed] = few
        ops = np.full(attributes.shape, Op.EQ, dtype=np.int32)
        ops[:, p.fixed_equal : p.fixed_equal + p.fixed_at_most] = Op.LE
        ops[:, p.fixed_equal + p.fixed_at_most : p.fixed] = Op.GE
        sides = random.integers(0, 2, (count, p.free_ranges), dtype=np.int32)
        ops[:, p.predicates - p.free_ranges :] = np.where(sides == 0, Op.LE, Op.GE)
        lows = np.where(ops == Op.LE, p.lowest, constants).astype(np.int32)
        highs = np.where(ops == Op.GE, p.highest, constants).astype(np.int32)
        return Ragged.even(attributes, ops.astype(np.int8), lows, highs)

    def _draw_events(self, random: Generator, count: int) -> Ragged:
        """Return the attributes and values of a block of events, a row each."""
        p = self.parameters
        attributes = np.empty((count, p.pairs), dtype=np.int32)
        attributes[:, : p.fixed_pairs] = np.arange(p.fixed_pairs)
        others = p.names - p.fixed_pairs
        if p.pairs == p.names:
            attributes[:, p.fixed_pairs :] = p.fixed_pairs + np.arange(others)
        else:
            free = _distinct(random, count, p.pairs - p.fixed_pairs, others)
            attributes[:, p.fixed_pairs :] = p.fixed_pairs + free
        values = random.integers(p.event_lowest, p.event_highest + 1, attributes.shape, dtype=np.int32)
        if p.event_fixed_values is not None:
            few = random.integers(
                p.event_lowest, p.event_lowest + p.event_fixed_values, attributes.shape, dtype=np.int32
            )
            is_fixed = (attributes >= p.first_name) & (attributes < p.first_name + p.fixed)
            values[is_fixed] = few[is_fixed]
        return Ragged.even(attributes, values)


class Churn(Struct, frozen=True):
    """The paper's protocol: each second the oldest subscriptions go, as many new ones come, then events arrive.

    The workload that new subscriptions and events are drawn from may be another than the one that filled the
    matcher: so schemas drift and values become skewed.
    """

    changes: int = 50  # subscriptions that go, and that come, a second
    events: int = 100  # events a second

    def seconds(
        self, incoming: Workload, begin: int, end: int
    ) -> Iterator[tuple[NDArray[np.int64], NumberedSubscriptions, NumberedEvents]]:
        """Return, for each second from `begin` to `end`, the ids that go, the subscriptions that come, and the events.

        The first ids to go are those from 0 on; the first subscriptions to come are the first of `incoming`.
        """
        coming = incoming.subscriptions(begin * self.changes, end * self.changes, batch=self.changes)
        arriving = incoming.events(begin * self.events, end * self.events, batch=self.events)
        for second, new, events in zip(range(begin, end), coming, arriving, strict=True):
            first = second * self.changes
            yield np.arange(first, first + self.changes, dtype=np.int64), new, events


CHURN: Final = Churn()


def _distinct(random: Generator, rows: int, count: int, among: int) -> NDArray[np.int32]:
    """Return rows of `count` different numbers below `among`."""
    if count * count > 2 * among:
        order = random.random((rows, among), dtype=np.float32)
        return np.argsort(order, axis=1)[:, :count].astype(np.int32)
    drawn = random.integers(0, max(among, 1), (rows, count), dtype=np.int32)
    while True:
        ordered = np.sort(drawn, axis=1)
        again = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if not len(again):
            return drawn
        drawn[again] = random.integers(0, among, (len(again), count), dtype=np.int32)
