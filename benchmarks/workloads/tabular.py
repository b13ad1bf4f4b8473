"""Numbered workloads as users have them: templates with parameters, and tables of subscriptions and of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language import Template
from tocsin.matching import IdArray
from tocsin.matching.encoding.codes import Op
from tocsin.replay.numbered import NumberedEvents, NumberedSubscriptions, names_of

ID: Final = "id"


class FilledTemplate(Struct, frozen=True):
    """Subscriptions of one template: their numbers, and a column of constants for each parameter."""

    text: str
    numbers: IdArray  # int64[rows]
    columns: Mapping[str, NDArray[Any]]  # name -> [rows]

    def __len__(self) -> int:
        return len(self.numbers)

    def template(self) -> Template:
        """Return the text, read."""
        return Template(self.text)

    def with_ids(self) -> dict[str, NDArray[Any]]:
        """Return the columns, and the numbers as a column of ids."""
        return {ID: self.numbers, **self.columns}


def split(keys: NDArray[np.integer[Any]]) -> list[NDArray[np.int64]]:
    """Return the places of equal rows of a matrix, each group in ascending order."""
    if not len(keys):
        return []
    _, groups = np.unique(keys, axis=0, return_inverse=True)
    groups = groups.reshape(-1)
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def templates(subscriptions: Iterable[NumberedSubscriptions]) -> Iterator[FilledTemplate]:
    """Return subscriptions of equalities, all of one length, as templates: one for each set of attributes."""
    ids, attributes, values = _cells(subscriptions)
    names = names_of(int(attributes.max(initial=0)) + 1)
    for places in split(attributes):
        asked = [names[attribute] for attribute in attributes[places[0]].tolist()]
        text = " and ".join(f"{name} = :{name}" for name in asked)
        yield FilledTemplate(text, ids[places], dict(zip(asked, values[places].T.copy(), strict=True)))


def text_table(subscriptions: Iterable[NumberedSubscriptions]) -> pa.Table:
    """Return subscriptions of equalities as a table of ids and texts."""
    ids, attributes, values = _cells(subscriptions)
    names = names_of(int(attributes.max(initial=0)) + 1)
    texts = [
        " and ".join(f"{names[attribute]} = {value}" for attribute, value in zip(*row, strict=True))
        for row in zip(attributes.tolist(), values.tolist(), strict=True)
    ]
    return pa.table({ID: pa.array(ids).cast(pa.string()), "text": pa.array(texts, pa.string())})


def conditions_table(subscriptions: Iterable[NumberedSubscriptions], names: int) -> pa.Table:
    """Return subscriptions of equalities as a table: a column for each attribute, null where it may be anything."""
    ids, attributes, values = _cells(subscriptions)
    rows = np.repeat(np.arange(len(ids)), attributes.shape[1])
    return pa.table(
        {ID: pa.array(ids), **_spread((len(ids), names), rows, attributes.reshape(-1), values.reshape(-1))}
    )


def event_table(events: Iterable[NumberedEvents], names: int, *, first: int = 0) -> pa.Table:
    """Return events as a table: `event_id`, from `first` on, and a column for each attribute, null where it is absent."""
    parts = []
    for batch in events:
        count = len(batch.offsets) - 1
        rows = np.repeat(np.arange(count), np.diff(batch.offsets))
        columns = _spread((count, names), rows, batch.attributes, batch.values)
        parts.append(pa.table({"event_id": np.arange(first, first + count), **columns}))
        first += count
    return pa.concat_tables(parts)


def _spread(
    shape: tuple[int, int], rows: NDArray[np.int64], attributes: NDArray[np.int32], values: NDArray[np.int32]
) -> dict[str, pa.Array]:
    """Return a column for each attribute with the values of its cells, null where there is none."""
    held, is_null = np.zeros(shape, dtype=np.int32), np.ones(shape, dtype=np.bool_)
    held[rows, attributes] = values
    is_null[rows, attributes] = False
    names = enumerate(names_of(shape[1]))
    return {name: pa.array(held[:, place], mask=is_null[:, place]) for place, name in names}


def _cells(
    subscriptions: Iterable[NumberedSubscriptions],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return ids, and attributes and values of each subscription's predicates in the order of the attributes."""
    batches = list(subscriptions)
    widths = {int(width) for batch in batches for width in np.unique(np.diff(batch.offsets))}
    if len(widths) != 1 or any((batch.ops != Op.EQ).any() for batch in batches):
        raise ValueError("only subscriptions of equalities, all of one length, are tables")
    ids = np.concatenate([batch.ids for batch in batches])
    attributes = np.concatenate([batch.attributes for batch in batches]).reshape(len(ids), -1)
    values = np.concatenate([batch.lows for batch in batches]).reshape(len(ids), -1)
    order = np.argsort(attributes, axis=1, kind="stable")
    return ids, np.take_along_axis(attributes, order, axis=1), np.take_along_axis(values, order, axis=1)
