"""AMKH's workload (Wu and Yu, "Monitoring Web-Based Subscription Services", 3): seeded, streamed in batches of arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.workloads.blocks import NumberedWorkload, Ragged, check_parameters
from benchmarks.workloads.distributions import Choice
from tocsin.matching.encoding.codes import Op


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of figure 1, by default, which the studies behind the paper's rules vary.

    The equality-only attributes are `a0` and those that follow, the general ones come after them. Of each sort the first
    clauses of a subscription are on fixed attributes, the others on attributes drawn anew each time, never one twice.
    An event has a value for every attribute. Constants and values are whole numbers, each as likely as any other of its
    range.
    """

    equality_only: int = 10  # attributes on which there is `=` alone
    general: int = 10  # attributes on which there is `<` and `>` too
    equality_clauses: int = 2  # of a subscription, on equality-only attributes
    fixed_equality: int = 1  # how many of them are on the same attributes in every subscription
    equality_set: int | None = (
        None  # the others are on the first so many equality-only attributes; None: on any
    )
    general_clauses: int = 1  # of a subscription, on general attributes
    fixed_general: int = 1  # how many of them are on the same attributes in every subscription
    equal_share: float = 0.5  # of clauses on general attributes that are `=`; the rest is half `<`, half `>`
    lowest: int = 6  # the range of the constants
    highest: int = 95  # x: 15 to 95
    event_lowest: int = 6  # the range of an event's values
    event_highest: int = 95
    selectivity: float | None = (
        None  # the mean share of values that `<` and `>` hold for; None: as constants fall
    )

    def __post_init__(self) -> None:
        set_ = self.equality_only if self.equality_set is None else self.equality_set
        faults = {
            "a subscription needs a clause": self.equality_clauses + self.general_clauses < 1,
            "clauses on fixed attributes are some of all": not 0
            <= self.fixed_equality
            <= self.equality_clauses
            or not 0 <= self.fixed_general <= self.general_clauses,
            "`equality_set` must be some of the equality-only attributes, and enough for the clauses": not self.equality_clauses
            <= set_
            <= self.equality_only,
            "a subscription has more general clauses than there are attributes": self.general_clauses
            > self.general,
            "a share is from 0 to 1": not 0 <= self.equal_share <= 1,
            "a selectivity is above 0 and at most 1": self.selectivity is not None
            and not 0 < self.selectivity <= 1,
            "a range of values is empty": self.lowest > self.highest
            or self.event_lowest > self.event_highest,
        }
        check_parameters(faults)

    @property
    def attributes(self) -> int:
        """Return how many attributes there are."""
        return self.equality_only + self.general

    @property
    def clauses(self) -> int:
        """Return how many clauses a subscription has."""
        return self.equality_clauses + self.general_clauses

    @property
    def free_equality(self) -> int:
        """Return among how many attributes the clauses are spread that are on equality-only attributes, not fixed ones."""
        return (self.equality_only if self.equality_set is None else self.equality_set) - self.fixed_equality


FIGURE_1: Final = Parameters()


class Workload(NumberedWorkload):
    """Subscriptions and events drawn by `parameters`; the same seed draws the same ones, whatever the batches.

    >>> workload = Workload(FIGURE_1, seed=7)
    >>> [len(batch.ids) for batch in workload.subscriptions(0, 100_000)]
    [65536, 34464]
    """

    parameters: Parameters

    def _draw_subscriptions(self, random: Generator, count: int) -> Ragged:
        p = self.parameters
        attributes = np.concatenate(
            [
                _spread(random, count, p.equality_clauses, p.fixed_equality, p.free_equality),
                _spread(random, count, p.general_clauses, p.fixed_general, p.general - p.fixed_general)
                + np.int32(p.equality_only),
            ],
            axis=1,
        )
        constants = random.integers(p.lowest, p.highest + 1, attributes.shape, dtype=np.int32)
        ops = np.full(attributes.shape, Op.EQ, dtype=np.int8)
        kinds = random.random((count, p.general_clauses), dtype=np.float32)
        is_below = kinds < p.equal_share + (1 - p.equal_share) / 2
        ops[:, p.equality_clauses :] = np.where(
            kinds < p.equal_share, Op.EQ, np.where(is_below, Op.LT, Op.GT)
        )
        if p.selectivity is not None:
            _narrow(constants, ops, self._reaches(random, attributes.shape), p)
        return Ragged.even(attributes, ops, constants, constants)

    def _reaches(self, random: Generator, shape: tuple[int, ...]) -> NDArray[np.int32]:
        """Return for how many of an event's values an inequality is to hold: evenly about the share that is asked for."""
        p = self.parameters
        size = p.event_highest - p.event_lowest + 1
        twice = max(round(2 * size * (p.selectivity or 0.0)), 2)
        least, most = max(1, twice - size), min(size, twice - 1)
        return random.integers(least, max(most, least) + 1, shape, dtype=np.int32)

    def _draw_events(self, random: Generator, count: int) -> Ragged:
        p = self.parameters
        attributes = np.tile(np.arange(p.attributes, dtype=np.int32), (count, 1))
        values = random.integers(p.event_lowest, p.event_highest + 1, attributes.shape, dtype=np.int32)
        return Ragged.even(attributes, values)


def _spread(random: Generator, count: int, clauses: int, fixed: int, among: int) -> NDArray[np.int32]:
    """Return rows of attributes: the `fixed` first ones, and others, different ones, of the `among` that follow."""
    attributes = np.empty((count, clauses), dtype=np.int32)
    attributes[:, :fixed] = np.arange(fixed)
    if clauses > fixed:
        attributes[:, fixed:] = fixed + Choice(among).distinct(random, count, clauses - fixed)
    return attributes


def _narrow(
    constants: NDArray[Any], ops: NDArray[np.int8], reaches: NDArray[np.int32], p: Parameters
) -> None:
    """Set the constants of inequalities so that each holds for as many values as `reaches` says."""
    np.copyto(constants, p.event_lowest + reaches, where=ops == Op.LT)
    np.copyto(constants, p.event_highest - reaches, where=ops == Op.GT)
