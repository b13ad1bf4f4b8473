"""Pairs of rows with the same key: a reformulator sends them one by one, and subscribers store them."""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.columns import is_run_start
from tocsin.dissemination.query_kinds.base import Changes
from tocsin.dissemination.query_kinds.join_rows import JoinChanges, JoinSide, KeyedRows, TableImage
from tocsin.matching import IdArray, Matches
from tocsin.model.errors import TocsinError
from tocsin.views.aggregates.base import Answers, Present, Reformulator
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages

Pair: TypeAlias = tuple[int, int]
"""The id of a row of R, and that of a row of S."""

_BATCH: Final = 256  # a message may have very many subscriptions

_Sides: TypeAlias = tuple[int, float, int, float]  # a pair with r's x and s's z


class ChangedPairs(AnswerChanges, frozen=True, kw_only=True):
    """The sets of pairs that changed, and how many pairs of each came or went."""

    pairs: IdArray


class _PairChanges(NamedTuple):
    """Pairs that come (sign 1) or go (sign -1) for a subscription, as columns."""

    change: IdArray
    slot: IdArray
    r: IdArray
    s: IdArray
    sign: NDArray[np.int8]


class PairReformulator(Reformulator):
    """Both tables by key. A message is one pair that comes or goes, for all ranges that contain its x (5).

    Its payload is the ids `r` and `s`, the `z` by which subscribers filter, and a `sign`, 1 or -1. An updated row makes
    its pairs go, then come; a subscriber that gets both messages knows that nothing changed.
    """

    def __init__(self, r: TableImage, s: TableImage) -> None:
        self._tables = {JoinSide.R: KeyedRows(JoinSide.R, r), JoinSide.S: KeyedRows(JoinSide.S, s)}

    def load(self, x: Floats, y: Floats) -> None:  # noqa: ARG002 - no points can be taken
        """Raise `TocsinError`: a join has two tables, and is made with them."""
        raise TocsinError("a join has two tables of rows, not points; make its server from a `JoinQueries`")

    def reformulate(self, changes: Changes) -> Messages:
        """Apply `JoinChanges` in order, and return their messages."""
        columns: tuple[list[Any], ...] = ([], [], [], [], [], [])
        for position, sign, (r, x, s, z) in self._apply(changes):
            for column, value in zip(columns, (position, x, r, s, z, sign), strict=True):
                column.append(value)
        types = (np.int64, np.float64, np.int64, np.int64, np.float64, np.int8)
        change, at, of_r, of_s, of_z, signs = (
            np.array(column, dtype=type_) for column, type_ in zip(columns, types, strict=True)
        )
        infinite = np.full(len(at), np.inf)
        return Messages(change, at, at, -infinite, infinite, {"r": of_r, "s": of_s, "z": of_z, "sign": signs})

    def _apply(self, changes: JoinChanges) -> Iterator[tuple[int, int, _Sides]]:
        """Apply changes, and yield each pair with its change's position and its sign."""
        changes.check()
        columns = (getattr(changes, name).tolist() for name in changes.__struct_fields__)
        rows = zip(*columns, strict=True)
        for position, (number, id, old_key, old_value, new_key, new_value) in enumerate(rows):
            table = JoinSide(number)
            own = self._tables[table]
            goes, comes = old_key == old_key, new_key == new_key  # noqa: PLR0124 - NaN alone differs from itself
            if goes:
                own.expect(position, id, old_key, old_value)
            elif comes:
                own.expect_none(position, id)
            if (old_key, old_value) == (new_key, new_value):
                continue
            if goes:
                own.remove(id, old_key)
                yield from ((position, -1, sides) for sides in self._pairs(table, id, old_key, old_value))
            if comes:
                own.add(id, new_key, new_value)
                yield from ((position, 1, sides) for sides in self._pairs(table, id, new_key, new_value))

    def _pairs(self, table: JoinSide, id: int, key: float, value: float) -> Iterator[_Sides]:
        """Yield all pairs of a row with rows of the other table."""
        if table is JoinSide.R:
            yield from ((id, value, s, z) for s, z in self._tables[JoinSide.S].of(key).items())
        else:
            yield from ((r, x, id, value) for r, x in self._tables[JoinSide.R].of(key).items())

    def present(self, lows: Floats, highs: Floats) -> Present:
        """Return all pairs in the order of their x as columns `r`, `s`, `z`; those of range i stand from `begins[i]` to `ends[i]`."""
        found = [
            (x, r, s, z)
            for key, rows in self._tables[JoinSide.R].all()
            for r, x in rows.items()
            for s, z in self._tables[JoinSide.S].of(key).items()
        ]
        found.sort()
        x, z = (np.array([one[i] for one in found], dtype=np.float64) for i in (0, 3))
        r, s = (np.array([one[i] for one in found], dtype=np.int64) for i in (1, 2))
        begins, ends = np.searchsorted(x, lows), np.searchsorted(x, highs, side="right")
        return {"r": r, "s": s, "z": z, "begins": begins, "ends": ends}

    @property
    def nbytes(self) -> int:
        """Return the bytes of both tables."""
        return sum(rows.nbytes for rows in self._tables.values())


class PairAnswers(Answers):
    """A sorted tuple of pairs for each subscription, by its number.

    A subscription takes pairs whose z is within its own range of z, both ends included.
    """

    def __init__(self, z_lows: Floats, z_highs: Floats) -> None:
        self._z_lows, self._z_highs = z_lows, z_highs
        self._sets: list[tuple[Pair, ...]] = [()] * len(z_lows)

    def begin(self, slots: IdArray, present: Present) -> None:
        """Give subscriptions the pairs within their ranges of x and z."""
        z, begins, ends = present["z"], present["begins"].tolist(), present["ends"].tolist()
        pairs = list(zip(present["r"].tolist(), present["s"].tolist(), strict=True))
        for slot, begin, end in zip(slots.tolist(), begins, ends, strict=True):
            taken = (self._z_lows[slot] <= z[begin:end]) & (z[begin:end] <= self._z_highs[slot])
            self._sets[slot] = tuple(sorted(pairs[begin + i] for i in np.flatnonzero(taken).tolist()))

    def end(self, slots: IdArray) -> None:
        """Forget the sets of subscriptions."""
        for slot in slots.tolist():
            self._sets[slot] = ()

    def apply(self, messages: Messages, matches: Matches) -> ChangedPairs:
        """Return the sets that change, each once per change, sorted by change and subscription."""
        changes = self._changes(messages, matches)
        begins = np.flatnonzero(is_run_start(changes.change, changes.slot))
        slots = changes.slot[begins]
        old, new = (np.empty(len(begins), dtype=object) for _ in range(2))
        lines = list(zip(changes.r.tolist(), changes.s.tolist(), changes.sign.tolist(), strict=True))
        sizes = np.diff(np.append(begins, len(lines)))
        ends = (begins + sizes).tolist()
        for i, (slot, begin, end) in enumerate(zip(slots.tolist(), begins.tolist(), ends, strict=True)):
            old[i] = self._sets[slot]
            new[i] = self._sets[slot] = _updated(self._sets[slot], lines[begin:end])
        return ChangedPairs(changes.change[begins], slots, old, new, pairs=sizes)

    def _changes(self, messages: Messages, found: Matches) -> _PairChanges:
        """Return the pairs that come or go, sorted by change and subscription; a pair that goes and comes again is dropped."""
        payload = messages.payload
        of, slot = self._filtered(payload["z"], found)
        # At most two messages of a change are about the same pair; their signs are added.
        lines = _numbered(messages.change, payload["r"], payload["s"])[of] * len(self._sets) + slot
        order = np.argsort(lines, kind="stable")
        begins = np.flatnonzero(is_run_start(lines[order]))
        sign = np.add.reduceat(payload["sign"][of][order], begins) if len(begins) else np.empty(0, np.int8)
        unchanged = sign == 0
        of, slot, sign = of[order[begins]][~unchanged], slot[order[begins]][~unchanged], sign[~unchanged]
        change = messages.change[of]
        order = np.lexsort((slot, change))
        of, slot, sign = of[order], slot[order], sign[order]
        return _PairChanges(change[order], slot, payload["r"][of], payload["s"][of], sign)

    def _filtered(self, z: Floats, found: Matches) -> tuple[IdArray, IdArray]:
        """Return, as pairs, the messages and the subscriptions found for them whose range of z contains the message's z."""
        messages, slots = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for begin in range(0, len(found), _BATCH):
            offsets = found.offsets[begin : begin + _BATCH + 1]
            slot = found.ids[offsets[0] : offsets[-1]]
            of = np.repeat(np.arange(begin, begin + len(offsets) - 1), np.diff(offsets))
            taken = (self._z_lows[slot] <= z[of]) & (z[of] <= self._z_highs[slot])
            messages.append(of[taken])
            slots.append(slot[taken])
        return np.concatenate(messages), np.concatenate(slots)

    def answer(self, slot: int) -> tuple[Any, ...]:
        """Return a subscription's pairs, ascending."""
        return self._sets[slot]

    @property
    def nbytes(self) -> int:
        """Return the bytes of all sets without the pairs, which sets share."""
        return sys.getsizeof(self._sets) + sum(map(sys.getsizeof, self._sets))


def _numbered(*columns: IdArray) -> IdArray:
    """Return a number for each row of columns, the same for equal rows."""
    order = np.lexsort(columns)
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(is_run_start(*(column[order] for column in columns))) - 1
    return numbers


def _updated(pairs: tuple[Pair, ...], lines: list[tuple[int, int, int]]) -> tuple[Pair, ...]:
    """Return sorted pairs after lines of r, s and sign were added or removed."""
    changed = list(pairs)
    for r, s, sign in lines:
        if sign > 0:
            insort(changed, (r, s))
        else:
            del changed[bisect_left(changed, (r, s))]
    return tuple(changed)
