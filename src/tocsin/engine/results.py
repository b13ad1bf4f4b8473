"""What the engine answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.formats import Fault
from tocsin.matching import IdArray, MatcherStats
from tocsin.model import Event, Notification, Value

Values: TypeAlias = Mapping[str, Value | None] | None
"""What a sequence selected or computed, by name; None if it has nothing of the kind."""

_encode: Final = msgspec.json.Encoder().encode


class Trial(Struct, frozen=True):
    """What a subscription would have been told: the events, of how many, and the records that were refused.

    Of a sequence, `events` are those that completed it, and `notifications` what it would have told of them; `late` are
    those that came out of order, and did not reach it.
    """

    events: tuple[Event, ...]
    examined: int
    faults: tuple[Fault, ...] = ()
    notifications: tuple[Notification, ...] = ()
    late: tuple[Event, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.events)


class NamedMatches(Struct, frozen=True):
    """Per row, the subscriptions it satisfies: those of row i are `ids[offsets[i]:offsets[i + 1]]`.

    They come in the order of their ids, or, if the best were asked for, with their `scores`, the highest first.
    """

    offsets: IdArray  # int64[rows + 1]
    ids: tuple[str, ...]
    faults: tuple[Fault, ...] = ()
    scores: tuple[float, ...] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> tuple[str, ...]:
        if not 0 <= row < len(self):
            raise IndexError(row)
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (self[row] for row in range(len(self)))

    def to_arrow(self) -> pa.Table:
        """Return one line per match, with the columns `row` and `subscription`, and `score` if they are ranked."""
        rows = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        columns = {"row": rows, "subscription": pa.array(self.ids, pa.string())}
        ranked = {} if self.scores is None else {"score": pa.array(self.scores, pa.float64())}
        return pa.table(columns | ranked)


class Followed(Struct, frozen=True):
    """Sequences that a table's rows completed, as columns of equal length, in the order of the rows.

    `values` are those that a sequence selected or computed, None where it has none.
    """

    subscriptions: tuple[str, ...]
    rows: IdArray  # int64[] the row that completed it, from 0
    starts: IdArray  # int64[]
    ends: IdArray  # int64[]
    values: tuple[Values, ...]

    @classmethod
    def joined(
        cls, parts: Iterable[tuple[tuple[str, ...], IdArray, IdArray, IdArray, list[Values]]]
    ) -> Followed:
        """Return several parts of the columns as one."""
        none = np.empty(0, dtype=np.int64)
        names, rows, starts, ends, values = zip(((), none, none, none, []), *parts, strict=True)
        return cls(
            tuple(chain.from_iterable(names)),
            np.concatenate(rows),
            np.concatenate(starts),
            np.concatenate(ends),
            tuple(chain.from_iterable(values)),
        )

    def __len__(self) -> int:
        return len(self.subscriptions)

    def to_arrow(self) -> pa.Table:
        """Return one line per witness, with the columns `row`, `subscription`, `start`, `end`, and `values` as JSON."""
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


class AnswerChanges(Struct, frozen=True):
    """Answers of views that a table's rows changed, as columns of equal length, in the order of the rows.

    `old` and `new` are floats, NaN for null, if all these views tell numbers; else objects.
    """

    rows: IdArray  # int64[] the row that changed it, from 0
    subscriptions: NDArray[Any]  # the ids
    old: NDArray[Any]
    new: NDArray[Any]

    def __len__(self) -> int:
        return len(self.rows)

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


class HeldSequences(Struct, frozen=True):
    """What sequences hold: the nodes of their automata, and the instances that wait there.

    `waiting` events have not had their turn, `late` ones came after it, and `dropped` instances were ended by the
    memory limit.
    """

    subscriptions: int = 0
    nodes: int = 0
    instances: int = 0
    bytes: int = 0
    dropped: int = 0
    late: int = 0
    waiting: int = 0


class HeldViews(Struct, frozen=True):
    """What tables and views hold: `families` of views that ask the same of a table share what its changes become.

    `messages` have been made of changes so far, and `late` rows were older than those held.
    """

    subscriptions: int = 0
    families: int = 0
    tables: int = 0
    rows: int = 0
    bytes: int = 0
    messages: int = 0
    late: int = 0


class EngineStats(Struct, frozen=True):
    """What the engine holds and what has passed through it."""

    subscriptions: int
    kept_events: int
    generation: int
    published: int
    refused: int
    notifications: int
    expired: int
    dropped_arrays: int
    matcher: MatcherStats
    sequences: HeldSequences = HeldSequences()
    views: HeldViews = HeldViews()

    @property
    def late(self) -> int:
        """Return how many events came too late for sequences."""
        return self.sequences.late
