"""Subscriptions to products (OpIndex 7.5): attributes by the logarithm of their frequency, operands from the catalogue."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.opindex.workloads.catalogue import Catalogue, log_frequencies
from benchmarks.workloads.blocks import Ragged
from benchmarks.workloads.distributions import Choice
from benchmarks.workloads.pooled import PooledWorkload, RecordEvents
from tocsin.matching.encoding.codes import Keys
from tocsin.model.conditions import Operator, Predicate
from tocsin.model.terms import Attribute, literal

_OPERATORS: Final = (Operator.EQ, Operator.IN, Operator.LE, Operator.GE, Operator.BETWEEN)
_EQ, _IN, _LE, _GE, _BETWEEN = range(len(_OPERATORS))
_BITS: Final = 30  # of a code, for each of the two values of a predicate
_SET: Final = (2, 6)  # an `in` has from so many to fewer than so many values


class ProductParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of subscriptions.

    The paper draws a subscription's attributes independently. Few products have all of them, so that next to
    nothing matches. With `from_one` they, and the operands, are those of one product, which satisfies the
    subscription.
    """

    most_predicates: int = 8  # a subscription has 1 to so many, on different attributes
    from_one: bool = False
    set_share: float = (
        0.5  # of predicates on strings `in`; the rest are `=`. On numbers: `=`, `<=`, `>=`, between
    )


class ProductWorkload(PooledWorkload):
    """Subscriptions over a catalogue, and its products as events; the same seed draws the same ones.

    An operand is drawn from what products have, so a frequent value is asked for often. The values of an `in` are
    the drawn one and those that follow it in an order that the seed gives an attribute's values: what is asked
    for together tends to be so by others, too.
    """

    parameters: ProductParameters

    def __init__(self, catalogue: Catalogue, parameters: ProductParameters, seed: int = 1) -> None:
        self.catalogue = catalogue
        self._seed = seed
        super().__init__(parameters, seed)

    def _events_of(self, rows: Ragged) -> RecordEvents:
        return RecordEvents([self.catalogue.row(product) for product in rows.columns[0].tolist()])

    @cached_property
    def _attributes(self) -> Choice:
        return log_frequencies(self.catalogue)

    @cached_property
    def _occurrences(self) -> tuple[Keys, NDArray[np.int32]]:
        """Return all products' values by attribute, and where each attribute's begin."""
        held = self.catalogue.products.columns[0]
        owners = self.catalogue.owners[held]
        bounds = np.concatenate([[0], np.cumsum(self.catalogue.frequencies)])
        return bounds, held[np.argsort(owners, kind="stable")]

    @cached_property
    def _sets(self) -> tuple[Keys, Keys, Keys, Keys]:
        """Return strings in an order by attribute, each value's place in it, where it ends, and how many an `in` has."""
        random = np.random.default_rng([self._seed, 2])
        owners = self.catalogue.owners
        ranks = np.lexsort((random.random(len(owners)), owners, self.catalogue.is_number))
        places = np.empty(len(owners), dtype=np.int64)
        places[ranks] = np.arange(len(owners))
        groups = owners[ranks] * 2 + self.catalogue.is_number[ranks]
        last = np.flatnonzero(np.append(groups[1:] != groups[:-1], True))
        ends = last[np.searchsorted(last, places)] + 1
        return ranks, places, ends, random.integers(*_SET, len(owners))

    def _draw_subscriptions(self, random: Generator, count: int) -> Ragged:
        sizes = random.integers(1, self.parameters.most_predicates + 1, count)
        if self.parameters.from_one:
            drawn = self._drawn_from_one(random, sizes)
        else:
            width = min(self.parameters.most_predicates, self._attributes.possible)
            attributes = self._attributes.distinct(random, count, width)
            drawn = Ragged.first(sizes, self._operands(random, attributes))
        return Ragged(drawn.offsets, (self._codes(random, drawn.columns[0]),))

    def _drawn_from_one(self, random: Generator, sizes: Keys) -> Ragged:
        """Return values of a product for each row, by log frequency among the attributes that it has."""
        products = self.catalogue.products
        chosen = random.integers(0, len(products), len(sizes))
        lengths = np.diff(products.offsets)[chosen]
        ends = np.cumsum(lengths)
        rows = np.repeat(np.arange(len(sizes)), lengths)
        places = np.arange(len(rows)) - np.repeat(ends - lengths, lengths)
        held = products.columns[0][np.repeat(products.offsets[chosen], lengths) + places]
        weights = np.log1p(self.catalogue.frequencies[self.catalogue.owners[held]])
        # The smallest exponential keys come in the order in which the attributes would be drawn.
        order = np.lexsort((random.standard_exponential(len(held)) / weights, rows))
        kept = np.minimum(sizes, lengths)
        offsets = np.concatenate([[0], np.cumsum(kept)])
        return Ragged(offsets, (held[order][places < np.repeat(kept, lengths)],))

    def _operands(self, random: Generator, attributes: NDArray[Any]) -> NDArray[np.int32]:
        """Return a value of each of these attributes, as often as products have it."""
        bounds, held = self._occurrences
        begins, counts = bounds[attributes], self.catalogue.frequencies[attributes]
        places = begins + (random.random(attributes.shape) * counts).astype(np.int64)
        return np.asarray(held[places], dtype=np.int32)

    def _codes(self, random: Generator, drawn: NDArray[np.int32]) -> Keys:
        """Return predicates that hold for the drawn values, as an operator and one or two values each."""
        is_number = self.catalogue.is_number
        other = self._operands(random, self.catalogue.owners[drawn])
        other = np.where(is_number[other], other, drawn)
        # A bound is the drawn value, or one beyond it.
        is_less = self._order[other] < self._order[drawn]
        least, greatest = np.where(is_less, other, drawn), np.where(is_less, drawn, other)
        texts = np.where(random.random(len(drawn)) < self.parameters.set_share, _IN, _EQ)
        numbers = random.choice((_EQ, _LE, _GE, _BETWEEN), len(drawn))
        kinds = np.where(is_number[drawn], numbers, np.where(self.catalogue.is_text[drawn], texts, _EQ))
        lows = np.where(kinds == _LE, greatest, np.where((kinds == _GE) | (kinds == _BETWEEN), least, drawn))
        highs = np.where(kinds == _BETWEEN, greatest, 0)
        kinds, lows, highs = (part.astype(np.int64) for part in (kinds, lows, highs))
        return np.asarray((kinds << 2 * _BITS) | (lows << _BITS) | highs)

    @cached_property
    def _order(self) -> NDArray[np.float64]:
        """Return each value as a float to compare numbers by; 0 for other values."""
        values, is_number = self.catalogue.values, self.catalogue.is_number.tolist()
        return np.array([float(v) if n else 0.0 for v, n in zip(values, is_number, strict=True)])  # type: ignore[arg-type]

    def _draw_events(self, random: Generator, count: int) -> Ragged:
        return Ragged.even(random.integers(0, len(self.catalogue), (count, 1)))

    def _predicate(self, code: int) -> Predicate:
        mask = (1 << _BITS) - 1
        kind, low, high = code >> 2 * _BITS, code >> _BITS & mask, code & mask
        values = [low, high] if kind == _BETWEEN else self._members(low) if kind == _IN else [low]
        subject = Attribute(self.catalogue.names[self.catalogue.owners[low]])
        return Predicate(
            subject, _OPERATORS[kind], tuple(literal(self.catalogue.values[value]) for value in values)
        )

    def _members(self, value: int) -> list[int]:
        ranks, places, ends, sizes = self._sets
        begin = int(places[value])
        found: list[int] = ranks[begin : min(begin + int(sizes[value]), int(ends[value]))].tolist()
        return found
