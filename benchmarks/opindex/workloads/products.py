"""A catalogue of products, read or made up, and subscriptions to it (OpIndex 7.5): attributes by the logarithm of their frequency."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.opindex.workloads.keywords import files_at
from benchmarks.workloads.blocks import Ragged
from benchmarks.workloads.distributions import Choice, zipf
from benchmarks.workloads.pooled import PooledWorkload, RecordEvents
from benchmarks.workloads.words import make_words
from tocsin.formats.files import format_of, raw_records
from tocsin.formats.records import UnreadableRecord
from tocsin.matching.encoding.codes import Keys
from tocsin.model.conditions import Operator, Predicate
from tocsin.model.errors import EventError, TocsinError
from tocsin.model.event import flatten
from tocsin.model.terms import Attribute, literal
from tocsin.model.values import Opaque, Value

_MADE: Final = 5_000  # words that a made-up catalogue's values are of

_OPERATORS: Final = (Operator.EQ, Operator.IN, Operator.LE, Operator.GE, Operator.BETWEEN)
_EQ, _IN, _LE, _GE, _BETWEEN = range(len(_OPERATORS))
_BITS: Final = 30  # of a code, for each of the two values of a predicate
_SET: Final = (2, 6)  # an `in` has from so many to fewer than so many values


class Catalogue:
    """Products as numbers of values; a value belongs to one attribute.

    `values[v]` is a value of the attribute `names[owners[v]]`, and the values of product i are those that row i
    of `products` names.
    """

    def __init__(self, names: Sequence[str], values: Sequence[Value], owners: Keys, products: Ragged) -> None:
        self.names = tuple(names)
        self.values = values
        self.owners = owners
        self.products = products

    @classmethod
    def of(cls, rows: Iterator[Mapping[str, Value]] | Sequence[Mapping[str, Value]]) -> Catalogue:
        """Return the catalogue of flat rows."""
        names: dict[str, int] = {}
        known: dict[tuple[str, type, Value], int] = {}
        offsets, cells = [0], []
        for row in rows:
            for name, value in row.items():
                names.setdefault(name, len(names))
                kind = (
                    float if type(value) is int else type(value)
                )  # 1 and 1.0 are one value, `true` is another
                cells.append(known.setdefault((name, kind, value), len(known)))
            offsets.append(len(cells))
        products = Ragged(np.array(offsets, dtype=np.int64), (np.array(cells, dtype=np.int32),))
        owners = np.array([names[name] for name, _, _ in known], dtype=np.int64)
        return cls(tuple(names), [value for _, _, value in known], owners, products)

    def __len__(self) -> int:
        return len(self.products)

    def row(self, product: int) -> dict[str, Value]:
        """Return a product as a flat dict."""
        begin, end = self.products.offsets[product : product + 2].tolist()
        held = self.products.columns[0][begin:end].tolist()
        return {self.names[self.owners[value]]: self.values[value] for value in held}

    @cached_property
    def frequencies(self) -> Keys:
        """Return, of each attribute, how many products have it."""
        return np.bincount(self.owners[self.products.columns[0]], minlength=len(self.names))

    @cached_property
    def is_number(self) -> NDArray[np.bool_]:
        """Return, for each value, whether it is a number."""
        return np.array([type(value) in (int, float) for value in self.values], dtype=np.bool_)

    @cached_property
    def is_text(self) -> NDArray[np.bool_]:
        """Return, for each value, whether it is a string."""
        return np.array([type(value) is str for value in self.values], dtype=np.bool_)


def read_catalogue(
    path: Path, *, without: Sequence[str] = ("id",), progress: Callable[[str], None] = lambda _: None
) -> Catalogue:
    """Return the products of a file or a folder of JSON lines, but for attributes that no one would ask for.

    A record that is no event is left out. Raise `TocsinError` if there is none that is.
    """
    catalogue = Catalogue.of(_rows(path, without, progress))
    if not len(catalogue.values):
        raise TocsinError(f"{path} has no products; it should have objects with attributes, one a line")
    return catalogue


def make_catalogue(products: int = 20_000, attributes: int = 4_000, seed: int = 1) -> Catalogue:
    """Return made-up products: some attributes that most have, and others that only a category's products have.

    Categories are of very different sizes. Of an attribute's values, which are words or numbers, some are frequent.
    """
    random = np.random.default_rng([seed, products, attributes])
    common = min(20, attributes // 2)
    categories = max((attributes - common) // 40, 1)
    members = np.array_split(np.arange(common, attributes), categories)
    is_word = random.random(attributes) < 0.7
    sizes = random.integers(3, 200, attributes)  # values of each attribute
    words = make_words(_MADE)
    category_of = zipf(categories, 0.8).draw(random, products)
    favourite = zipf(200, 0.9)
    wanted = 1.0 / np.arange(1, common + 1)  # a few common attributes are in nearly every product

    def rows() -> Iterator[Mapping[str, Value]]:
        for category in category_of.tolist():
            own = members[category]
            likely = np.concatenate([wanted, 1.0 / np.sqrt(np.arange(1, len(own) + 1))])
            has = random.random(len(likely)) < likely
            held = np.concatenate([np.arange(common), own])[has]
            ranks = favourite.draw(random, len(held)) % sizes[held]
            yield {
                f"p{attribute}": words[(attribute * 37 + rank) % _MADE]
                if is_word[attribute]
                else _number(rank)
                for attribute, rank in zip(held.tolist(), ranks.tolist(), strict=True)
            }

    return Catalogue.of(rows())


def log_frequencies(catalogue: Catalogue) -> Choice:
    """Return attributes by the logarithm of how many products have them, as the paper draws them.

    An attribute of one product is never drawn, unless all are such.
    """
    weights = np.log(catalogue.frequencies)
    return Choice(len(weights), weights if weights.any() else np.ones(len(weights)))


def _rows(
    path: Path, without: Sequence[str], progress: Callable[[str], None]
) -> Iterator[Mapping[str, Value]]:
    count = 0
    for file in files_at(path):
        for _, record in raw_records(file, format_of(file)):
            if isinstance(record, UnreadableRecord) or not isinstance(record, Mapping):
                continue
            try:
                read = flatten(record)
            except EventError:
                continue
            row = {
                name: value
                for name, value in read.items()
                if name not in without and not isinstance(value, Opaque)
            }
            if row:
                yield row
                count += 1
                if count % 10_000 == 0:
                    progress(f"{count:,} products of {path} read")


def _number(rank: int) -> Value:
    return rank if rank % 3 else rank * 2.5


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
        constants = tuple(literal(self.catalogue.values[value]) for value in values)
        return Predicate(subject, _OPERATORS[kind], constants)

    def _members(self, value: int) -> list[int]:
        ranks, places, ends, sizes = self._sets
        begin = int(places[value])
        found: list[int] = ranks[begin : min(begin + int(sizes[value]), int(ends[value]))].tolist()
        return found
