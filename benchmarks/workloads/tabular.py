"""Numbered workloads as users have them: templates with parameters, and tables of subscriptions and of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import Op
from tocsin.replay.numbered import NumberedEvents, NumberedSubscriptions, names_of

ID: Final = "id"


class FilledTemplate(Struct, frozen=True):
    """One text and the parameters of all subscriptions that are written so; the column `id` holds their ids."""

    text: str
    columns: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.columns[ID])


def templates(subscriptions: Iterable[NumberedSubscriptions]) -> Iterator[FilledTemplate]:
    """Return subscriptions of equalities, all of one length, as templates: one for each set of attributes."""
    ids, attributes, values = _cells(subscriptions)
    order = np.lexsort(attributes.T[::-1])
    ids, attributes, values = ids[order], attributes[order], values[order]
    is_first = np.ones(len(ids), dtype=np.bool_)
    is_first[1:] = (attributes[1:] != attributes[:-1]).any(axis=1)
    begins = np.flatnonzero(is_first).tolist()
    names = names_of(int(attributes.max(initial=0)) + 1)
    for begin, end in zip(begins, [*begins[1:], len(ids)], strict=True):
        asked = [names[attribute] for attribute in attributes[begin].tolist()]
        text = " and ".join(f"{name} = :{name}" for name in asked)
        columns: dict[str, NDArray[Any]] = {
            name: np.ascontiguousarray(values[begin:end, place]) for place, name in enumerate(asked)
        }
        yield FilledTemplate(text, {ID: ids[begin:end], **columns})


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
    wanted = np.zeros((len(ids), names), dtype=np.int32)
    is_asked = np.zeros((len(ids), names), dtype=np.bool_)
    np.put_along_axis(wanted, attributes, values, axis=1)
    np.put_along_axis(is_asked, attributes, np.True_, axis=1)
    columns = {
        name: pa.array(wanted[:, place], mask=~is_asked[:, place])
        for place, name in enumerate(names_of(names))
    }
    return pa.table({ID: pa.array(ids), **columns})


def event_table(events: Iterable[NumberedEvents], names: int, *, first: int = 0) -> pa.Table:
    """Return events as a table: `event_id`, from `first` on, and a column for each attribute, null where it is absent."""
    parts = []
    for batch in events:
        count = len(batch.offsets) - 1
        rows = np.repeat(np.arange(count), np.diff(batch.offsets))
        values = np.zeros((count, names), dtype=np.int32)
        is_there = np.zeros((count, names), dtype=np.bool_)
        values[rows, batch.attributes] = batch.values
        is_there[rows, batch.attributes] = True
        columns = {
            name: pa.array(values[:, place], mask=~is_there[:, place])
            for place, name in enumerate(names_of(names))
        }
        parts.append(pa.table({"event_id": np.arange(first, first + count), **columns}))
        first += count
    return pa.concat_tables(parts)


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
