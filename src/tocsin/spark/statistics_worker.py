"""Statistics on Spark's workers: count, condense each partition, and merge partitions.

Counts come as rows (subject, kind, value, events). Once Spark has added them up, each value lies in one partition
with its whole count. So a partition's most frequent values include all of its values that are globally most frequent;
the rest is condensed to points, many for each later bin, before partitions are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tocsin.matching.statistics.distribution import condensed, distribution, most_frequent
from tocsin.matching.statistics.files import encode_distribution, encode_joint
from tocsin.matching.statistics.joint import Group, joint
from tocsin.matching.statistics.tally import EVENTS, GROUP, REFUSED, TEXTS, Tally
from tocsin.matching.statistics.texts import text_of, value_of
from tocsin.model.values import Kind
from tocsin.spark.event_decoding import DecodedPart, EventLayout

COUNTS: Final = "subject string, kind string, value string, events long"
PARTS: Final = "subject string, kind string, part string, value string, events long"
SUMMARIES: Final = "subject string, kind string, events long, document string"

# Parts of a partition's summary of a subject and kind
_FREQUENT: Final = "frequent"
_REST: Final = "rest"
_DISTINCT: Final = "distinct"

_PER_BIN: Final = 32  # points of a partition for each bin,
_FEWEST: Final = 1024  # and at the least
_HELD: Final = 200_000  # counts that a worker keeps before it emits them
_ROWS: Final = 20_000  # rows of an emitted batch
_TOTALS: Final = (EVENTS, REFUSED, TEXTS)

Batches = Iterable[pa.RecordBatch]


def count(layout: EventLayout, groups: Sequence[Group], batches: Batches) -> Iterator[pa.RecordBatch]:
    """Return the counts of the events in these batches, added up as far as a worker's memory goes."""
    tally = Tally(groups)
    for batch in batches:
        decoded = layout.read(batch)
        tally.refuse(len(decoded.faults))
        excluded = {*decoded.faults, *decoded.silent}
        for part in decoded.parts:
            tally.add(part.events, without=_within(part, excluded))
        if tally.size > _HELD:
            yield from _batches(tally.rows(), COUNTS)
            tally.clear()
    yield from _batches(tally.rows(), COUNTS)


def condense(top: int, bins: int, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Return, of each subject and kind, the most frequent values, points for the rest, and how many there are.

    The batches hold a partition of whole counts, in the order of subjects and kinds.
    """
    return _batches(_condensed(top, bins, batches), PARTS)


def summarise(top: int, bins: int, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Return a document for each subject and kind; its counts from all partitions follow each other in the batches."""
    return _batches(_summarised(top, bins, batches), SUMMARIES)


def _condensed(top: int, bins: int, batches: Batches) -> Iterator[tuple[str, str, str, str, int]]:
    """Yield, for each subject, its frequent values, the rest in condensed form, and the number of values."""
    for (subject, kind), rows in groupby(_rows(batches), itemgetter(0, 1)):
        if kind in _TOTALS:
            yield subject, kind, _REST, "", sum(row[3] for row in rows)
            continue
        counts = [(_value(kind, text), events) for _, _, text, events in rows]
        frequent, left = most_frequent(counts, top)
        yield subject, kind, _DISTINCT, "", len(counts)
        for value, events in frequent.items():
            yield subject, kind, _FREQUENT, _text(kind, value), events
        if kind == GROUP:
            yield subject, kind, _REST, "", sum(events for _, events in left)
        else:
            for value, events in condensed(left, max(_PER_BIN * bins, _FEWEST)):
                yield subject, kind, _REST, _text(kind, value), events


def _summarised(top: int, bins: int, batches: Batches) -> Iterator[tuple[str, str, int, str]]:
    """Yield, for each subject, a count and the encoded distribution that its parts add up to."""
    for (subject, kind), rows in groupby(_rows(batches), itemgetter(0, 1)):
        parts: dict[str, list[tuple[str, int]]] = {_FREQUENT: [], _REST: [], _DISTINCT: []}
        for _, _, part, text, events in rows:
            parts[part].append((text, events))
        frequent, rest = parts[_FREQUENT], parts[_REST]
        left = sum(events for _, events in rest)
        distinct = sum(number for _, number in parts[_DISTINCT])
        if kind in _TOTALS:
            yield subject, kind, left, ""
        elif kind == GROUP:
            found = joint(frequent, top=top, distinct=distinct, more=left)
            yield subject, kind, found.count, encode_joint(found).decode()
        else:
            values = distribution(
                Kind(kind),
                [(_value(kind, text), events) for text, events in frequent],
                top=top,
                bins=bins,
                rest=[(_value(kind, text), events) for text, events in rest],
                distinct=distinct,
            )
            yield subject, kind, values.count, encode_distribution(values).decode()


def _within(part: DecodedPart, places: set[int]) -> set[int]:
    """Return the positions within a part of some rows of the batch."""
    if part.rows is None or not places:
        return places
    return set(np.flatnonzero(np.isin(part.rows, list(places))).tolist())


def _value(kind: str, text: str) -> Any:
    """Return the value to order by: a value, or a combination's text."""
    return text if kind == GROUP else value_of(Kind(kind), text)


def _text(kind: str, value: Any) -> str:
    return str(value) if kind == GROUP else text_of(value)


def _rows(batches: Batches) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _batches(rows: Iterable[tuple[Any, ...]], schema: str) -> Iterator[pa.RecordBatch]:
    """Yield rows as batches of a schema in Spark's notation."""
    fields = [pair.split() for pair in schema.split(", ")]
    types = {"string": pa.string(), "long": pa.int64()}
    arrow = pa.schema([(name, types[kind]) for name, kind in fields])
    pending: list[tuple[Any, ...]] = []
    for row in rows:
        pending.append(row)
        if len(pending) == _ROWS:
            yield _batch(pending, arrow)
            pending = []
    if pending:
        yield _batch(pending, arrow)


def _batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
