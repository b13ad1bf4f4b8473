"""Events as shards take them: with their times in ticks, in the order of their end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tocsin.index import StatefulSubscriptions
from tocsin.matching import EventBatch
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.timed_batch import RowValidity, TimedBatch, TimedRows
from tocsin.model.event import STREAM, Event
from tocsin.model.values import Value
from tocsin.spark.event_decoding import DecodedBatch, EventLayout
from tocsin.structures.array_types import Int64s

ROLES: Final = "__tocsin_roles"
"""The column that says what a routed event travels for."""


class ReadEvents(Struct, frozen=True):
    """A record batch as events of whatever streams.

    `ends` are in ticks of each event's stream, `lengths` the microseconds of these, and `scales` what a tick has to be multiplied with for a time as the
    DataFrame has it: 1 where that counts ticks itself.
    """

    decoded: DecodedBatch
    events: EventBatch
    ends: Int64s
    lengths: Int64s
    scales: Int64s
    until: RowValidity | None

    @classmethod
    def of(cls, layout: EventLayout, batch: Any, stateful: StatefulSubscriptions) -> ReadEvents:
        """Return a record batch's rows as events, by the ticks of streams and the keys of tables."""
        decoded = layout.read(batch, together=True).without_keyless_rows(stateful.tables)
        (part,) = decoded.parts
        lengths = _tick_lengths(part.events, len(decoded.ends), stateful.ticks)
        scales = np.where(decoded.is_dated, lengths, 1)
        until = decoded.until
        if until is not None and until.is_kept.any():
            until = RowValidity(until.until // scales, until.is_kept)
        else:
            until = None
        return cls(decoded, part.events, decoded.ends // scales, lengths, scales, until)

    def timed(self, ids: Any) -> TimedBatch:
        """Return the events, with these ids, as runtimes take them; none of them has a fault."""
        if isinstance(self.events, ArrowEvents):
            return TimedRows(
                self.events,
                self.ends,
                self.ends,
                names=lambda number, _: str(ids[number].as_py()),
                validity=self.until,
            )
        return TimedBatch([self._event(row, id_) for row, id_ in enumerate(ids.to_pylist())])

    def _event(self, row: int, id_: object) -> Event:
        attributes: dict[str, Value] = dict(self.events.attributes(row))
        stream = attributes.pop(STREAM, None)
        until = None if self.until is None else self.until.at(row)
        end = int(self.ends[row])
        return Event(str(id_), attributes, None if stream is None else str(stream), end, end, until)


def in_order(batch: Any, ends: Int64s) -> Any:
    """Return a record batch in the order of its rows' ends, or itself if it is."""
    if (ends[1:] >= ends[:-1]).all():
        return batch
    return batch.take(pa.array(np.argsort(ends, kind="stable")))


def _tick_lengths(events: EventBatch, count: int, ticks: Mapping[str, int]) -> Int64s:
    """Return the microseconds of a tick of each event's stream."""
    lengths = np.ones(count, dtype=np.int64)
    if not ticks:
        return lengths
    if not isinstance(events, ArrowEvents):
        for row in range(count):
            lengths[row] = ticks.get(str(events.attributes(row).get(STREAM)), 1)
    elif events.streams is None:
        lengths[:] = ticks.get(events.stream or "", 1)
    else:
        for name in events.streams.names:
            lengths[events.streams.has(name)] = ticks.get(name, 1)
    return lengths
