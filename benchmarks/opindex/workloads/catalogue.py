"""A catalogue of products, each with a few of very many attributes: from any flat JSON lines, or made up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.opindex.workloads.corpus import files_at
from benchmarks.workloads.blocks import Ragged
from benchmarks.workloads.distributions import Choice, zipf
from benchmarks.workloads.words import make_words
from tocsin.formats.files import format_of, raw_records
from tocsin.formats.records import UnreadableRecord
from tocsin.matching.encoding.codes import Keys
from tocsin.model.errors import EventError, TocsinError
from tocsin.model.event import flatten
from tocsin.model.values import Value

_MADE: Final = 5_000  # words that a made-up catalogue's values are of


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
                row = flatten(record)
            except EventError:
                continue
            for name in without:
                row.pop(name, None)
            if row:
                yield row
                count += 1
                if count % 10_000 == 0:
                    progress(f"{count:,} products of {path} read")


def _number(rank: int) -> Value:
    return rank if rank % 3 else rank * 2.5
