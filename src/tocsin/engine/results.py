"""The results of the engine: matches, changes and dry runs with the subscriptions' ids, and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.display.text import counted, first_warning, shortened, summary
from tocsin.formats import Fault
from tocsin.formats.frames import ArrowColumns
from tocsin.matching import IdArray, MatcherStats
from tocsin.model import Event, Notification, Value
from tocsin.sequences.runtime import SequenceRuntimeStats
from tocsin.subscriptions.registry import SubscriptionRegistry
from tocsin.views.answer_changes import number_answer
from tocsin.views.runtime import ViewStats

Values: TypeAlias = Mapping[str, Value | None] | None
"""The values that a sequence selected or computed, by name; None if it has none."""

_NO_ROWS: Final = np.empty(0, dtype=np.int64)
_encode: Final = msgspec.json.Encoder().encode


class DryRun(Struct, frozen=True):
    """The result of a dry run: the matched events, the number of examined ones, and the refused records.

    `notifications` are those that the query would have sent, one for each match, completed sequence or changed answer. For a
    sequence, `events` are those that completed it, and `late` those that came out of order and did not reach it; for a view, the
    rows that changed its answer. `tick` is the length of the events' ticks in microseconds, and
    `warnings` are for the query's writer.
    """

    events: tuple[Event, ...]
    examined: int
    faults: tuple[Fault, ...] = ()
    notifications: tuple[Notification, ...] = ()
    late: tuple[Event, ...] = ()
    tick: int = 1
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.events)

    @property
    def fired(self) -> int:
        """Return how often the query would have notified."""
        return len(self.notifications)

    def __repr__(self) -> str:
        refused = f"{counted(len(self.faults), 'record')} refused" if self.faults else ""
        late = f"{len(self.late):,} late" if self.late else ""
        fired = f"would have fired {counted(self.fired, 'time')} in {counted(self.examined, 'event')}"
        return summary(self, [fired, refused, late, first_warning(self.warnings)])

    def _repr_html_(self) -> str:
        from tocsin.engine.display import dry_run_chart  # noqa: PLC0415 - only notebooks need it

        return dry_run_chart(self)


class NamedMatches(ArrowColumns, Struct, frozen=True):
    """The filters that each row satisfies: row i has `ids[offsets[i]:offsets[i + 1]]`.

    They come in the order of their ids or, if the top k were asked for, with their `scores`, the highest first.
    """

    offsets: IdArray  # int64[rows + 1]
    ids: tuple[str, ...]
    faults: tuple[Fault, ...] = ()
    scores: tuple[float, ...] | None = None

    @classmethod
    def of(
        cls,
        count: int,
        rows: IdArray,
        numbers: IdArray,
        *,
        registry: SubscriptionRegistry,
        faults: tuple[Fault, ...],
        scores: NDArray[np.float64] | None = None,
    ) -> NamedMatches:
        """Return matches by the ids of their subscriptions, for so many rows."""
        offsets = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
        distinct, which = np.unique(numbers, return_inverse=True)
        ids = registry.ids_of(distinct)
        if scores is not None:
            named = tuple(ids[i] for i in which.tolist())
            return cls(offsets, named, faults, tuple(scores.tolist()))
        # Sorting integers (the row, then the rank of the id) is quicker than sorting the strings of every row.
        order = sorted(range(len(ids)), key=ids.__getitem__)
        rank = np.empty(len(ids), dtype=np.int64)
        rank[order] = np.arange(len(ids))
        by_name = np.sort(rows * max(len(ids), 1) + rank[which]) % max(len(ids), 1)
        return cls(offsets, tuple(ids[i] for i in np.array(order, dtype=np.int64)[by_name].tolist()), faults)

    @classmethod
    def join(cls, parts: Iterable[NamedMatches]) -> NamedMatches:
        """Return the matches of several parts of the rows, which are not ranked, as one."""
        each = list(parts)
        counts = np.concatenate([np.diff(part.offsets) for part in each])
        offsets = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        ids = tuple(chain.from_iterable(part.ids for part in each))
        return cls(offsets, ids, tuple(chain.from_iterable(part.faults for part in each)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> tuple[str, ...]:
        if not 0 <= row < len(self):
            raise IndexError(row)
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        found = f"{counted(len(self.ids), 'match')} of {counted(len(self), 'row')}"
        refused = f"{counted(len(self.faults), 'row')} refused" if self.faults else ""
        return summary(self, [found, refused], first=self.ids)

    def _repr_html_(self) -> str:
        from tocsin.engine.display import matches_table  # noqa: PLC0415 - only notebooks need it

        return matches_table(self)

    def to_arrow(self) -> pa.Table:
        """Return one line per match, with the columns `row` and `subscription`, and `score` if they are ranked."""
        rows = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        columns = {"row": rows, "subscription": pa.array(self.ids, pa.string())}
        ranked = {} if self.scores is None else {"score": pa.array(self.scores, pa.float64())}
        return pa.table(columns | ranked)


class NamedSequenceMatches(ArrowColumns, Struct, frozen=True):
    """Sequences that a table's rows completed, as columns of equal length, in the order of the rows.

    `values` are those that a sequence selected or computed, None where it has none.
    """

    subscriptions: tuple[str, ...]
    rows: IdArray  # int64[] the row that completed it, from 0
    starts: IdArray  # int64[]
    ends: IdArray  # int64[]
    values: tuple[Values, ...]

    @classmethod
    def join(cls, parts: Iterable[NamedSequenceMatches]) -> NamedSequenceMatches:
        """Return several parts of the columns as one."""
        each = list(parts)
        return cls(
            tuple(chain.from_iterable(part.subscriptions for part in each)),
            np.concatenate([_NO_ROWS, *(part.rows for part in each)]),
            np.concatenate([_NO_ROWS, *(part.starts for part in each)]),
            np.concatenate([_NO_ROWS, *(part.ends for part in each)]),
            tuple(chain.from_iterable(part.values for part in each)),
        )

    def __len__(self) -> int:
        return len(self.subscriptions)

    def __repr__(self) -> str:
        return summary(self, [counted(len(self), "sequence")], first=self.subscriptions)

    def _repr_html_(self) -> str:
        from tocsin.engine.display import sequence_matches_table  # noqa: PLC0415 - only notebooks need it

        return sequence_matches_table(self)

    def notifications(self, generation: int) -> list[Notification]:
        """Return a notification of each sequence, which names no events: the rows have no ids."""
        columns = self.subscriptions, self.starts.tolist(), self.ends.tolist(), self.values
        return [
            Notification(id_, (), values=values, start=start, end=end, generation=generation)
            for id_, start, end, values in zip(*columns, strict=True)
        ]

    def to_arrow(self) -> pa.Table:
        """Return one line per match, with the columns `row`, `subscription`, `start`, `end`, and `values` as JSON."""
        written = [None if values is None else _encode(dict(values)).decode() for values in self.values]
        return pa.table(
            {
                "row": self.rows,
                "subscription": pa.array(self.subscriptions, pa.string()),
                "start": self.starts,
                "end": self.ends,
                "values": pa.array(written, pa.string()),
            }
        )


class NamedAnswerChanges(ArrowColumns, Struct, frozen=True):
    """Answers of views that a table's rows changed, as columns of equal length, in the order of the rows.

    `old` and `new` are floats, NaN for null, if all answers are numbers; else objects.
    """

    rows: IdArray  # int64[] the row that changed it, from 0
    subscriptions: NDArray[Any]  # the ids
    old: NDArray[Any]
    new: NDArray[Any]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return summary(self, [counted(len(self), "changed answer")], first=list(self.subscriptions[:4]))

    def _repr_html_(self) -> str:
        from tocsin.engine.display import answer_changes_table  # noqa: PLC0415 - only notebooks need it

        return answer_changes_table(self)

    def notifications(self, ends: IdArray, generation: int) -> list[Notification]:
        """Return a notification of each change, given when the table's rows ended; it names no event: rows have no ids."""
        return [
            Notification(
                str(self.subscriptions[i]),
                (),
                old=number_answer(self.old.item(i)),
                new=number_answer(self.new.item(i)),
                start=end,
                end=end,
                generation=generation,
                view=True,
            )
            for i, end in enumerate(ends[self.rows].tolist())
        ]

    def to_arrow(self) -> pa.Table:
        """Return one line per change, with the columns `row`, `subscription`, `old` and `new`; objects are JSON texts."""
        answers = {"old": self.old, "new": self.new}
        if self.new.dtype == object:
            written = {name: [_encode(one).decode() for one in column] for name, column in answers.items()}
            columns = {name: pa.array(texts, pa.string()) for name, texts in written.items()}
        else:
            columns = {name: pa.array(column, from_pandas=True) for name, column in answers.items()}
        return pa.table(
            {"row": self.rows, "subscription": pa.array(self.subscriptions, pa.string()), **columns}
        )


class EngineStats(Struct, frozen=True):
    """Sizes and counts of an engine."""

    subscriptions: int
    kept_events: int
    generation: int
    published: int
    refused: int
    notifications: int
    expired: int
    opaque_values: int
    matcher: MatcherStats
    sequences: SequenceRuntimeStats = SequenceRuntimeStats()
    views: ViewStats = ViewStats()

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{name.replace('_', ' ')} {getattr(self, name):,}" for name in self.__struct_fields__[:8]
        )
        parts = (f"  {name}: {_counts(getattr(self, name))}" for name in self.__struct_fields__[8:])
        return "\n".join([f"<EngineStats: {counts}", *parts]) + ">"

    @property
    def late(self) -> int:
        """Return how many events came too late for sequences."""
        return self.sequences.late


def _counts(stats: Struct) -> str:
    """Return the counts of a runtime in one line."""
    fields = {name: getattr(stats, name) for name in stats.__struct_fields__}
    counts = fields | dict(fields.pop("details", None) or {})
    texts = (
        f"{name} {value:,.6g}" if isinstance(value, float) else f"{name} {value:,}"
        for name, value in counts.items()
    )
    return shortened(", ".join(texts), 160)
