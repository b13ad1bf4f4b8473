"""Counting events by the values of their attributes, and by the combinations of values in groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tocsin.formats.arrow_rows import arrow_rows
from tocsin.formats.opaque_columns import is_opaque
from tocsin.matching.batches import EventBatch
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.encoding.columns import leaf_paths, leaves
from tocsin.matching.statistics.joint import Group
from tocsin.matching.statistics.texts import combination_text, text_of
from tocsin.model.event import STREAM
from tocsin.model.terms import Literal
from tocsin.model.timestamps import SHORTEST, parse_timestamp
from tocsin.model.values import Kind, Opaque, Value, kind_of, read_value

# Kinds of rows besides the kinds of values
EVENTS: Final = "events"
REFUSED: Final = "refused"  # records that are not events
TEXTS: Final = "texts"  # strings that are counted as timestamps too
GROUP: Final = "group"  # combinations; the subject is the group's place


class Row(NamedTuple):
    """The number of events with the value `value`, of kind `kind`, in the attribute `subject`."""

    subject: str
    kind: str
    value: str
    events: int


class Tally:
    """Counts of all values in the events added so far; `rows` returns them.

    A string that parses as a timestamp is counted as both, because a predicate may compare its attribute with either.
    """

    def __init__(self, groups: Sequence[Group] = ()) -> None:
        self._groups = tuple(_Counted(group) for group in groups)
        self._by_first: dict[str, list[_Counted]] = {}
        for group in self._groups:
            self._by_first.setdefault(group.paths[0], []).append(group)
        self.clear()

    def clear(self) -> None:
        """Reset all counts."""
        self._events = 0
        self._refused = 0
        # By path and type, because `True` equals 1; 1 and 1.0 have the same text and are added up later.
        self._values: defaultdict[tuple[str, type], Counter[Any]] = defaultdict(Counter)
        for group in self._groups:
            group.counts.clear()

    @property
    def size(self) -> int:
        """Return the number of counts."""
        return sum(map(len, self._values.values())) + sum(len(group.counts) for group in self._groups)

    def add(self, events: EventBatch, *, without: Collection[int] = ()) -> None:
        """Count the events of a batch except those at the places `without`; faulty rows are counted as refused."""
        if isinstance(events, ArrowEvents) and self._add_columns(events, without):
            return
        for place in range(len(events)):
            if place in without:
                continue
            row = events.attributes(place)
            if events.is_refused(place):
                self._refused += 1
            else:
                self._add_row(row)

    def refuse(self, count: int) -> None:
        """Count records that are not events."""
        self._refused += count

    def rows(self) -> Iterator[Row]:
        """Yield all counts; a subject, kind and value may occur more than once."""
        yield Row("", EVENTS, "", self._events)
        yield Row("", REFUSED, "", self._refused)
        for (path, _), counts in self._values.items():
            kind = kind_of(next(iter(counts)))
            yield from (Row(path, kind, text_of(value), count) for value, count in counts.items())
            if kind is Kind.STRING:
                yield from _timestamps(path, counts)
        for place, group in enumerate(self._groups):
            for values, count in group.counts.items():
                yield Row(str(place), GROUP, combination_text([_known(value) for value in values]), count)

    def _add_row(self, row: Mapping[str, Value]) -> None:
        """Count the values of one event, and its combinations of the grouped attributes."""
        self._events += 1
        if Opaque in set(map(type, row.values())):
            row = {path: value for path, value in row.items() if type(value) is not Opaque}
        for path, value in row.items():
            self._values[path, type(value)][value] += 1
        if not self._by_first:
            return
        keys, marked = row.keys(), row
        if bool in set(map(type, row.values())):
            marked = {path: _marked(value) for path, value in row.items()}  # type: ignore[misc]
        for path in row:
            for group in self._by_first.get(path, ()):
                if keys >= group.names:
                    group.counts[group.values(marked)] += 1

    def _add_columns(self, events: ArrowEvents, without: Collection[int]) -> bool:
        """Count a batch by column; return False, and count nothing, if Arrow cannot count some type."""
        if not events.is_table:
            return False
        refused = events.faults.keys() - set(without)
        try:
            table = _without(events.table, {*refused, *without})
            columns = _columns(table)
            if events.stream is not None:
                columns[STREAM] = pa.repeat(events.stream, table.num_rows)
            alone = {path: list(_values(column)) for path, column in columns.items()}
            together = [list(_combinations(columns, group.paths)) for group in self._groups]
        except pa.ArrowNotImplementedError:
            return False
        self._events += table.num_rows
        self._refused += len(refused)
        for path, values in alone.items():
            for value, count in values:
                self._values[path, type(value)][value] += count
        for group, combinations in zip(self._groups, together, strict=True):
            for combination, count in combinations:
                group.counts[tuple(map(_marked, combination))] += count
        return True


class _Counted:
    """A group and the counts of its combinations of values; booleans are marked."""

    def __init__(self, paths: Group) -> None:
        self.paths = paths
        self.names = frozenset(paths)
        self.values = itemgetter(*paths)
        self.counts: Counter[Any] = Counter()


def _marked(value: Value) -> Value | Literal:
    """Return a stand-in that equals no value of another kind: `True` would equal 1."""
    return Literal(value, Kind.BOOLEAN) if isinstance(value, bool) else value


def _known(marked: Value | Literal) -> tuple[Kind, Value]:
    """Return the kind and the value of a stand-in by `_marked`."""
    if isinstance(marked, Literal):
        return marked.kind, marked.value
    return kind_of(marked), marked


def _timestamps(path: str, counts: Mapping[str, int]) -> Iterator[Row]:
    """Yield the counts of strings that parse as timestamps."""
    found = 0
    for text, count in counts.items():
        time = parse_timestamp(text) if len(text) >= SHORTEST else None
        if time is not None:
            found += count
            yield Row(path, Kind.TIMESTAMP, text_of(time), count)
    if found:
        yield Row(path, TEXTS, "", found)


def _without(table: Any, places: Collection[int]) -> Any:
    """Return a table without some rows."""
    if not places:
        return table
    kept = np.ones(table.num_rows, dtype=np.bool_)
    kept[list(places)] = False
    return table.filter(pa.array(kept))


def _columns(table: Any) -> dict[str, Any]:
    """Return a table's leaves by path, each as one array."""
    batches = table.to_batches()
    paths = leaf_paths(table.schema) or ()
    if not batches:
        return {}
    parts = zip(*map(leaves, batches), strict=True)
    arrays = (pa.concat_arrays(part) if len(part) > 1 else part[0] for part in parts)
    return {
        path: _decoded(array) for path, array in zip(paths, arrays, strict=True) if not is_opaque(array.type)
    }


def _decoded(array: Any) -> Any:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _values(column: Any) -> Iterator[tuple[Value, int]]:
    """Yield the values of a column with their counts."""
    counted = column.drop_null().value_counts()
    yield from zip(_read(counted.field(0)), counted.field(1).to_pylist(), strict=True)


def _combinations(columns: Mapping[str, Any], group: Group) -> Iterator[tuple[tuple[Value, ...], int]]:
    """Yield the combinations of values in a group's columns, with their counts."""
    if not all(path in columns for path in group):
        return
    names = [str(place) for place in range(len(group))]
    table = pa.table([columns[path] for path in group], names=names).drop_null()
    counted = table.group_by(names).aggregate([([], "count_all")])
    values = zip(*(_read(counted[name].combine_chunks()) for name in names), strict=True)
    yield from zip(values, counted["count_all"].to_pylist(), strict=True)


def _read(array: Any) -> Iterator[Value]:
    """Yield the values of an array without nulls as events have them."""
    for _, row in arrow_rows([pa.RecordBatch.from_arrays([array], ["value"])]):
        value = read_value(row["value"])  # type: ignore[index]
        if value is not None:
            yield value
