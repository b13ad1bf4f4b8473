"""What a shard returns: notifications, and the events that came too late, as Arrow columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from tocsin.formats.notifications import encode_json
from tocsin.model.event import Event
from tocsin.model.subscription import Answer
from tocsin.sharding.turns import Cause

NOTIFICATIONS: Final = pa.schema(
    [
        ("subscription", pa.string()),
        ("event_id", pa.string()),  # of the event that caused it; null for the first answer of a view
        ("event_ids", pa.list_(pa.string())),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("generation", pa.int64()),
        ("values", pa.string()),  # JSON, as `old` and `new` are
        ("old", pa.string()),
        ("new", pa.string()),
        ("row", pa.int64()),  # of the event that caused it, among those given; null for one that had waited
        ("carried", pa.binary()),  # what came with that one
    ]
)
LATE: Final = pa.schema(
    [
        ("event_id", pa.string()),
        ("end", pa.int64()),
        ("reason", pa.string()),
        ("is_late", pa.bool_()),  # or else it is no row of its table
        ("row", pa.int64()),
        ("carried", pa.binary()),
    ]
)


class ShardOutput(Struct, frozen=True):
    """The notifications of one call, and the events that were refused: too late for sequences, or no rows of their tables."""

    notifications: pa.RecordBatch
    late: pa.RecordBatch


class OutputWriter:
    """Collects notifications and late events."""

    def __init__(self, generation: int) -> None:
        self._generation = generation
        self._notifications: dict[str, list[Any]] = {name: [] for name in NOTIFICATIONS.names}
        self._late: dict[str, list[Any]] = {name: [] for name in LATE.names}

    def of_generation(self, generation: int) -> OutputWriter:
        """Return a writer for a later generation, with all that was added."""
        later = OutputWriter(generation)
        later._notifications, later._late = self._notifications, self._late
        return later

    def matched(
        self,
        subscription: str,
        event_ids: Sequence[str],
        times: tuple[int, int],
        values: Mapping[str, Any] | None,
        cause: Cause,
    ) -> None:
        """Add the notification of a sequence, or of a filter on a published event."""
        text = encode_json(dict(values)).decode() if values is not None else None
        self._add(subscription, event_ids, times, cause, values=text)

    def changed(self, subscription: str, event: Event, old: Answer, new: Answer, cause: Cause) -> None:
        """Add the notification of a changed answer."""
        texts = {"old": encode_json(old).decode(), "new": encode_json(new).decode()}
        self._add(subscription, (event.id,), (event.start, event.end), cause, **texts)

    def first_answer(self, subscription: str, answer: Answer) -> None:
        """Add the present answer of a new view."""
        self._add(subscription, (), (None, None), None, new=encode_json(answer).decode())

    def met(self, subscription: str, event: Event, values: str | None, cause: Cause) -> None:
        """Add the notification of a new filter that an event which was kept satisfies; `values` are JSON."""
        self._add(subscription, (event.id,), (event.start, event.end), cause, values=values)

    def refused(self, end: int, reason: str, cause: Cause, *, is_late: bool = False) -> None:
        """Add an event that came too late, or that is no row of its table."""
        line = (cause.event_id, end, reason, is_late, cause.row, cause.carried)
        for column, value in zip(self._late.values(), line, strict=True):
            column.append(value)

    def __bool__(self) -> bool:
        return bool(self._notifications["subscription"] or self._late["event_id"])

    def output(self) -> ShardOutput:
        """Return all that was added."""
        return ShardOutput(
            pa.RecordBatch.from_pydict(self._notifications, schema=NOTIFICATIONS),
            pa.RecordBatch.from_pydict(self._late, schema=LATE),
        )

    def _add(
        self,
        subscription: str,
        event_ids: Sequence[str],
        times: tuple[int | None, int | None],
        cause: Cause | None,
        *,
        values: str | None = None,
        old: str | None = None,
        new: str | None = None,
    ) -> None:
        by = (None, None, None) if cause is None else cause
        line = (subscription, by[0], event_ids, *times, self._generation, values, old, new, by[1], by[2])
        for column, value in zip(self._notifications.values(), line, strict=True):
            column.append(value)
