"""`distinct`: the different values.

By range (§5): a subscription hears of a value if the point that comes or goes is the only one of that value within its range.
By row: each subscription counts the rows of each value.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

import numpy as np
from msgspec.structs import astuple

from tocsin.language.semantics import known_value_of
from tocsin.matching import IdArray, Matches
from tocsin.model.values import Value, kind_of
from tocsin.structures.array_types import Bools
from tocsin.structures.growth import bytes_of, roomier
from tocsin.structures.sorted_blocks import new_sorted_blocks, of_pairs, with_changes, with_room
from tocsin.views._kernels.distinct import MOST, CodedPoints, Differences, codes_within, reformulate_distinct
from tocsin.views._kernels.message_room import new_message_room
from tocsin.views.aggregates import base
from tocsin.views.answer_changes import AnswerChanges, ChangeLog, objects
from tocsin.views.changes import Floats, PointChanges, Row
from tocsin.views.messages import Messages

Codes: TypeAlias = tuple[int, ...]
"""A set of values, as sorted codes."""

_Counted: TypeAlias = tuple[bool, Value]
"""A value, and whether it is a boolean: to Python `True` is 1, while other kinds are never equal."""

# by range


class DistinctReformulator(base.Reformulator):
    """Points in order of their code, to find a point's neighbours, and in order of x, to find the codes of a range."""

    def __init__(self) -> None:
        self._by_code = new_sorted_blocks()  # (code, x)
        self._by_x = new_sorted_blocks()  # (x, code)
        self._seen: Bools = np.zeros(0, dtype=np.bool_)

    def load(self, x: Floats, y: Floats) -> None:
        """Replace all points; none is NaN."""
        order = np.lexsort((x, y))
        self._by_code = of_pairs(y[order], x[order])
        order = np.lexsort((y, x))
        self._by_x = of_pairs(x[order], y[order])
        self._make_room(y)

    def _make_room(self, codes: Floats) -> None:
        """Make room for marks of these codes; NaN is none."""
        needed = int(np.fmax.reduce(codes, initial=-1)) + 1
        if needed > len(self._seen):
            self._seen = np.zeros(roomier(len(self._seen), needed), dtype=np.bool_)

    def reformulate(self, changes: PointChanges) -> Messages:
        """Make the changes, and return messages whose payload is a code `removed` and one `added`, -1 for none."""
        by_x = np.array(astuple(changes), dtype=np.float64)
        by_code = by_x[[1, 0, 3, 2]]
        room = MOST * len(changes)
        removed, added = np.empty((2, room), dtype=np.int64)
        written = np.zeros(1, dtype=np.int64)
        out = Differences(new_message_room(room), removed, added, written)
        reached = reformulate_distinct(self._by_code, by_code, 0, out)
        while 0 <= reached < len(changes):
            self._by_code = with_room(self._by_code, len(changes) - reached)
            reached = reformulate_distinct(self._by_code, by_code, reached, out)
        made = reached if reached >= 0 else -1 - reached
        by_x, done = np.ascontiguousarray(by_x[:, :made]), 0
        while done < made:
            self._by_x, done = with_changes(self._by_x, by_x, done)
        self._make_room(by_code[2])
        if reached < 0:
            raise base.missing_point_error(changes, made)
        return Messages.of(out.room, int(written[0]), removed=removed, added=added)

    def present(self, lows: Floats, highs: Floats) -> base.Present:
        """Return the `codes` within the ranges, ascending in each: those of range i end at `offsets[i + 1]`."""
        used = int(self._by_x.used[0])
        before = np.zeros(used + 1, dtype=np.int64)
        np.cumsum(self._by_x.size[:used], out=before[1:])
        points = CodedPoints(self._by_code, self._by_x, before, self._seen)
        lows, highs = base.floats(lows), base.floats(highs)
        offsets = np.zeros(len(lows) + 1, dtype=np.int64)
        codes = np.empty(8 * len(lows) + 64, dtype=np.int64)
        reached = 0
        while True:
            reached = codes_within(points, lows, highs, reached, offsets, codes)
            if reached == len(lows):
                break
            longer = np.empty(2 * len(codes), dtype=np.int64)
            longer[: offsets[reached]] = codes[: offsets[reached]]
            codes = longer
        # Sorted all at once: a range's number before the code.
        span = len(self._seen) + 1
        keys = np.repeat(np.arange(len(lows)) * span, np.diff(offsets)) + codes[: offsets[-1]]
        keys.sort()
        return {"offsets": offsets, "codes": keys % span}

    @property
    def nbytes(self) -> int:
        """Return the bytes of the points, in both orders."""
        return bytes_of(self._by_code) + bytes_of(self._by_x) + self._seen.nbytes


class DistinctAnswers(base.Answers):
    """A sorted tuple of codes for each subscription, by slot; subscriptions with equal sets share one tuple."""

    def __init__(self) -> None:
        self._sets: list[Codes] = []
        self._integers: list[int] = []  # [code] one Python integer for each code, which all sets share

    def begin(self, slots: IdArray, present: base.Present) -> None:
        """Add subscriptions with the codes within their ranges."""
        codes, ends = present["codes"], present["offsets"].tolist()
        self._sets += [()] * (int(slots.max(initial=-1)) + 1 - len(self._sets))
        self._integers += range(len(self._integers), int(codes.max(initial=-1)) + 1)
        every = list(map(self._integers.__getitem__, codes.tolist()))
        shared: dict[Codes, Codes] = {}
        for slot, begin, end in zip(slots.tolist(), ends, ends[1:], strict=False):
            one = tuple(every[begin:end])
            self._sets[slot] = shared.setdefault(one, one)

    def end(self, slots: IdArray) -> None:
        """Remove subscriptions."""
        for slot in slots.tolist():
            self._sets[slot] = ()

    def apply(self, messages: Messages, matches: Matches) -> AnswerChanges:
        """Apply each message to the sets that match it, and return the sets that change."""
        removed, added = messages.payload["removed"], messages.payload["added"]
        counts = np.diff(matches.offsets)
        self._integers += range(len(self._integers), int(added.max(initial=-1)) + 1)
        old: list[Codes] = []
        new: list[Codes] = []
        for message in np.flatnonzero(counts).tolist():
            goes, comes = int(removed[message]), int(added[message])
            # Sets are compared by identity. `old` keeps them alive, so that no id is used again.
            made: dict[int, Codes] = {}
            for slot in matches[message].tolist():
                before = self._sets[slot]
                after = made.get(id(before))
                if after is None:
                    after = made[id(before)] = self._changed(before, goes, comes)
                self._sets[slot] = after
                old.append(before)
                new.append(after)
        return AnswerChanges(
            np.repeat(messages.change, counts),
            matches.ids,
            objects(old),
            objects(new),
            np.repeat(removed, counts),
            np.repeat(added, counts),
        )

    def _changed(self, codes: Codes, removed: int, added: int) -> Codes:
        changed = list(codes)
        if removed >= 0:
            del changed[bisect_left(changed, removed)]
        if added >= 0:
            insort(changed, self._integers[added])
        return tuple(changed)

    def answer(self, slot: int) -> Codes:
        """Return a subscription's codes, ascending."""
        return self._sets[slot]

    @property
    def nbytes(self) -> int:
        """Return the bytes of all sets, shared ones counted once, and of the codes in them."""
        sets = {id(one): sys.getsizeof(one) for one in self._sets}
        numbers = sys.getsizeof(self._integers) + sum(map(sys.getsizeof, self._integers))
        return sys.getsizeof(self._sets) + sum(sets.values()) + numbers


# by row


class RowDistinct(base.RowAggregate[_Counted, dict[_Counted, int]]):
    """The different values, in order: by kind, and within a kind by value."""

    new_state = dict

    def read(self, row: Row) -> _Counted | None:
        """Return the value."""
        assert self.compiled.y is not None  # noqa: S101 - the language has no other
        value = known_value_of(self.compiled.y, row)
        return None if value is None else (type(value) is bool, value)

    def apply_row(self, row_key: base.RowKey, value: _Counted, numbers: Collection[int], step: int) -> None:  # noqa: ARG002 - any row
        """Count a row's value, or count it off."""
        for number in numbers:
            counts = self.states[number]
            now = counts.get(value, 0) + step
            if not now or now == step:  # the last row of this value, or the first
                self.touched.setdefault(number, dict.fromkeys(counts))
            if now:
                counts[value] = now
            else:
                del counts[value]

    def log_changes(self, row: int, log: ChangeLog) -> None:
        """Log the sets of values that changed."""
        for number, before in self.touched.items():
            now = self.states[number]
            removed = _values(value for value in before if value not in now)
            added = _values(value for value in now if value not in before)
            if removed or added:
                log.add(row, number, _values(before), _values(now), (removed, added))
        self.touched.clear()

    def answer(self, number: int) -> tuple[Value, ...]:
        """Return the values."""
        return _values(self.states[number])

    @property
    def nbytes(self) -> int:
        """Return the bytes of the counts, with a pair for each value of each subscription."""
        each = sum(sys.getsizeof(one) + len(one) * sys.getsizeof((0, 0)) for one in self.states.values())
        return sys.getsizeof(self.states) + each


def _values(counted: Iterable[_Counted]) -> tuple[Value, ...]:
    return tuple(sorted((value for _, value in counted), key=lambda value: (kind_of(value), value)))


AGGREGATES: Final = {
    "distinct": base.AggregateStrategies(
        RowDistinct, base.ByRange(base.Reads.VALUE, DistinctReformulator, DistinctAnswers, ())
    )
}
