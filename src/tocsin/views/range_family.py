"""Views of one aggregate over a range of one attribute: rows are points, messages are rectangles, arrays throughout."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import NoneType
from typing import Any, Final, TypeGuard

import numpy as np
from msgspec.structs import replace

from tocsin.language.printer import term_text
from tocsin.language.semantics import value_of
from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model.errors import EventError, TocsinError
from tocsin.model.subscription import Answer
from tocsin.model.terms import Attribute, Literal, Parameter
from tocsin.model.timestamps import microseconds
from tocsin.model.values import Kind as ValueKind
from tocsin.model.values import Opaque, Value, kind_of
from tocsin.structures.growth import roomier
from tocsin.structures.interning import InterningTable
from tocsin.structures.slots import SlotMap
from tocsin.views.aggregates.base import Answers, Reads, Reformulator
from tocsin.views.aggregates.extremes import LatestValues
from tocsin.views.aggregates.registry import range_aggregate
from tocsin.views.answer_changes import NO_CHANGES, AnswerChanges, number_answer, objects
from tocsin.views.batch import Batch, BatchChanges
from tocsin.views.cells import ABSENT, INTEGER
from tocsin.views.changes import Floats, PointChanges, Row, RowChange
from tocsin.views.compiled import Bound, CompiledRangeView, CompiledView
from tocsin.views.coverage import Coverage
from tocsin.views.family import Contents, FamilyStats
from tocsin.views.kind_order import OtherKey, other_key
from tocsin.views.numbers import WIDEST, moment, number
from tocsin.views.other_values import OtherPoint, OtherValues
from tocsin.views.range_index import new_range_index
from tocsin.views.table import StoredRows

_NOWHERE: Final = (math.nan, math.nan)  # where a row is that is no point
_ROWS: Final = 64  # rows that there is room for at first
_OTHER_TYPES: Final = frozenset((str, datetime, bool))  # of values that are no numbers


class RangeFamily:
    """Applys the points of a table's rows; its subscriptions are ranges in an index.

    Ranges and answers are stored by slot. With `check` the server's side knows the subscribed ranges, and sends no message
    that concerns none of them (§4).
    """

    def __init__(
        self,
        aggregate: str,
        matcher: str | None = None,
        compiled: CompiledRangeView | None = None,
        *,
        check: bool = False,
    ) -> None:
        self._by_range = range_aggregate(aggregate)
        self._compiled = compiled or CompiledRangeView(aggregate, "", "x", moments=False, y=Attribute("y"))
        self.tables: tuple[str, ...] = (self._compiled.table,)
        self.server = self._by_range.reformulator()
        self.index = new_range_index(matcher, _type_of(self._compiled))
        self.answers = self._by_range.answers()
        self.coverage = Coverage() if check else None
        self._ranges: dict[int, tuple[float, float]] = {}  # by slot, if the coverage is checked
        self._codes = InterningTable[tuple[ValueKind, Value]]()
        self._read_x = moment if self._compiled.moments else number
        self._y_name = "" if self._compiled.y is None else term_text(self._compiled.y)
        self._x: Floats = np.full(
            _ROWS, math.nan
        )  # [the row's slot in its table] NaN where the row is no point
        self._y: Floats = np.full(_ROWS, math.nan)
        self._others: OtherValues | None = (
            None  # once a row has a value that is no number, if such values count
        )
        self._slots = SlotMap()
        self._empty: set[int] = set()  # numbers whose range contains no number
        self._messages = 0

    def __len__(self) -> int:
        return len(self._slots) + len(self._empty)

    # by the column

    def load_points(self, x: Floats, y: Floats) -> None:
        """Replace all points; called before there are subscriptions."""
        if len(self._slots) or self._empty:
            raise TocsinError(
                "points are loaded before subscriptions are added: their answers would not follow"
            )
        self.server.load(np.ascontiguousarray(x), np.ascontiguousarray(y))

    def add_ranges(self, numbers: IdArray, lows: Floats, highs: Floats) -> None:
        """Add a subscription for each number, of a range with both ends included."""
        within = lows <= highs
        if not within.all():
            self._empty.update(numbers[~within].tolist())
            numbers, lows, highs = numbers[within], lows[within], highs[within]
        if len(numbers):
            present = self.server.present(lows, highs)
            slots = self._slots.take(numbers)
            self.answers.begin(slots, present)
            if self._others is not None:
                self._others.begin(slots, lows, highs)
            self.index.add(slots, lows, highs)
            if self.coverage is not None:
                self.coverage.add(lows, highs)
                pairs = zip(lows.tolist(), highs.tolist(), strict=True)
                self._ranges.update(zip(slots.tolist(), pairs, strict=True))

    def change_points(self, changes: PointChanges) -> AnswerChanges:
        """Apply changes of points, and return the answers that change."""
        answers = self._apply(self.server, self.answers, changes)
        if self._others is not None:
            answers = self._whole_answers(answers, NO_CHANGES)
        return self._by_number(answers)

    def _apply(self, server: Reformulator, stored: Answers, changes: PointChanges) -> AnswerChanges:
        """Apply changes of points to both sides, and return the answers that change, by slot."""
        messages = server.reformulate(changes)
        if self.coverage is not None:
            messages = messages.take(self.coverage.concerns(messages))
        count = len(messages.change)
        if not count:
            return NO_CHANGES
        self._messages += count
        return stored.apply(messages, self.index.match(messages))

    def _whole_answers(self, numbers: AnswerChanges, others: AnswerChanges) -> AnswerChanges:
        """Return the changes of answers that are a number, or without one another value."""
        if not len(others) and not np.isnan(numbers.old).any() and not np.isnan(numbers.new).any():
            return numbers
        assert self._others is not None  # noqa: S101 - or there were no others
        assert isinstance(self.answers, LatestValues)  # noqa: S101 - of `min` and `max`
        return self._others.combine(numbers, others, self.answers)

    def _by_number(self, answers: AnswerChanges) -> AnswerChanges:
        if self._slots.is_identity or not len(answers):
            return answers
        return replace(answers, numbers=self._slots.keys(answers.numbers))

    # row by row

    def load(self, rows: Contents) -> None:
        """Read the present rows of its table."""
        stored = rows[self._compiled.table]
        if not (isinstance(stored, StoredRows) and self._load_columns(stored)):
            self._load_each(stored)
        there = ~np.isnan(self._x)
        self.load_points(self._x[there], self._y[there])

    def _load_columns(self, rows: StoredRows) -> bool:
        """Read rows by the column, and return True; return False if each has to be read by itself."""
        try:
            read = self.read_batch(rows.batch())
        except EventError:
            return False
        if isinstance(read, list) or not len(rows.slots):
            return False
        self._make_room(int(rows.slots.max()) + 1)
        self._x[rows.slots], self._y[rows.slots] = read
        return True

    def _load_each(self, rows: Iterable[tuple[int, Row]]) -> None:
        others: list[tuple[int, OtherPoint]] = []
        for slot, row in rows:
            point = self.read(row)
            if _is_other(point):
                others.append((slot, point))
            else:
                self._place(slot, point)
        if others:
            self._begin_others().load(others)

    def add(self, numbers: IdArray, compiled: CompiledView, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""
        assert isinstance(compiled, CompiledRangeView)  # noqa: S101 - the caller chose the family by it
        size = len(numbers)
        lows = _ends(compiled.lows, columns, size, -WIDEST, upwards=True)
        highs = _ends(compiled.highs, columns, size, WIDEST, upwards=False)
        self.add_ranges(numbers, lows, highs)

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; unknown ones are skipped."""
        self._empty.difference_update(numbers.tolist())
        slots = self._slots.give(numbers.tolist())
        if not len(slots):
            return
        self.index.remove(slots)
        self.answers.end(slots)
        if self._others is not None:
            self._others.end(slots)
        if self.coverage is not None:
            lows, highs = np.array([self._ranges.pop(slot) for slot in slots.tolist()]).T.copy()
            self.coverage.remove(lows, highs)

    def read(self, row: Row) -> tuple[float, Any] | None:
        """Return the x and y of a row, None if it is no point; raise `EventError` for a number that no float holds.

        The y is the value itself with its kind, if values have codes; its key, if it is no number and counts.
        """
        compiled, reads = self._compiled, self._by_range.reads
        x = 0.0
        if compiled.x is not None:
            x = self._read_x(row.get(compiled.x), compiled.x) + 0.0
            if x != x:  # noqa: PLR0124 - NaN alone differs from itself
                return None
            x = -WIDEST if x < -WIDEST else WIDEST if x > WIDEST else x
        if compiled.y is None:
            return x, 0.0
        value = row.get(compiled.y.path) if type(compiled.y) is Attribute else value_of(compiled.y, row)
        if reads is Reads.NUMBER:
            if self._by_range.others and type(value) in _OTHER_TYPES:
                return x, other_key(value, self._by_range.others)  # type: ignore[arg-type]
            y = number(value, self._y_name) + 0.0
            return (x, y) if -WIDEST <= y <= WIDEST else None
        if value is None or (reads is Reads.VALUE and type(value) is Opaque):
            return None
        return x, (kind_of(value), value) if reads is Reads.VALUE else 0.0

    def change(self, changes: Sequence[RowChange]) -> AnswerChanges:
        """Apply changes of its table, and return the answers that change."""
        if self._others is not None or any(_is_other(one.new) for one in changes):
            return self._change_both(changes, self._others or self._begin_others())
        points: list[tuple[float, float, float, float]] = []
        moved = False
        for one in changes:
            old_x, old_y, x, y = point = self._place(one.slot, one.new)
            points.append(point)
            if (x != old_x or y != old_y) and not math.isnan(x) & math.isnan(old_x):
                moved = True
        # Most changes concern few of many families.
        answers = self.change_points(PointChanges(*np.array(points).T.copy())) if moved else NO_CHANGES
        if self._by_range.reads is Reads.VALUE:
            answers = self._decoded(answers)
            self._codes.release(np.array([one[1] for one in points if one[1] >= 0], dtype=np.int64))
        return answers

    def _change_both(self, changes: Sequence[RowChange], others: OtherValues) -> AnswerChanges:
        """Apply changes of its table, where some values are or were no numbers, and return the answers that change."""
        points: list[tuple[float, float, float, float]] = []
        other_points: list[tuple[int, OtherPoint | None]] = []
        moved = False
        for one in changes:
            is_other = _is_other(one.new)
            old_x, _, x, _ = point = self._place(one.slot, None if is_other else one.new)
            moved = moved or not math.isnan(x) or not math.isnan(old_x)
            points.append(point)
            other_points.append((one.slot, one.new if is_other else None))
        numbers = found = NO_CHANGES
        unused: list[OtherKey] = []
        if moved:
            numbers = self._apply(self.server, self.answers, PointChanges(*np.array(points).T.copy()))
        if others.concerns(other_points):
            found, unused = others.change(other_points, self._apply)
        answers = self._whole_answers(numbers, found)
        others.release(unused)
        return self._by_number(answers)

    def _begin_others(self) -> OtherValues:
        self._others = OtherValues(greatest=self._by_range.others < 0, slots=self._slots.top)
        return self._others

    def _place(self, slot: int, point: tuple[float, Any] | None) -> tuple[float, float, float, float]:
        """Note where a row is now; return where it was and where it is, and count a use of its value's code."""
        if slot >= len(self._x):
            self._make_room(slot + 1)
        y: Any
        x, y = _NOWHERE if point is None else point
        if self._by_range.reads is Reads.VALUE and point is not None:
            y = float(self._codes.acquire(y))
        old_x, old_y = self._x.item(slot), self._y.item(slot)
        self._x[slot], self._y[slot] = x, y
        return old_x, old_y, x, y

    def _make_room(self, slots: int) -> None:
        room = roomier(len(self._x), slots)
        self._x, self._y = (
            np.concatenate([column, np.full(room - len(column), math.nan)]) for column in (self._x, self._y)
        )

    # a batch of rows, by the column

    def read_batch(self, batch: Batch) -> tuple[Floats, Floats] | list[Any]:
        """Return the x and the y of all rows; one by one, as `read` does, where they cannot be read by the column."""
        compiled, reads = self._compiled, self._by_range.reads
        if compiled.moments or reads is Reads.VALUE or not isinstance(compiled.y, (Attribute, NoneType)):
            return [self.read(row) for row in batch.rows]
        column = None if compiled.y is None else batch.columns.get(compiled.y.path)
        if self._by_range.others and column is not None and (column.kinds > INTEGER).any():
            return [self.read(row) for row in batch.rows]
        x = np.zeros(len(batch))
        y = np.zeros(len(batch))
        if compiled.x is not None:
            x = np.clip(_numbers(batch, compiled.x), -WIDEST, WIDEST)
        if compiled.y is not None and reads is Reads.NUMBER:
            y = _numbers(batch, compiled.y.path)
            y[np.isinf(y)] = np.nan
        elif compiled.y is not None:
            y[slice(None) if column is None else column.kinds == ABSENT] = np.nan
        nowhere = np.isnan(x) | np.isnan(y)
        x[nowhere] = y[nowhere] = np.nan
        return x, y

    def change_batch(self, changes: BatchChanges, read: tuple[Floats, Floats] | list[Any]) -> AnswerChanges:
        """Apply the rows of a batch, and return the answers that change, by the row's position in the batch."""
        if self._others is not None and not isinstance(read, list):
            points = zip(*(one.tolist() for one in read), strict=True)
            read = [None if math.isnan(x) else (x, y) for x, y in points]
        if isinstance(read, list):
            found = self.change(
                changes.of_rows(read)
            ).as_objects()  # whether any row changes an answer or not
            return replace(found, rows=changes.positions[found.rows])
        slots, again = changes.slots, changes.previous >= 0
        if len(slots) and (top := int(slots.max())) >= len(self._x):
            self._make_room(top + 1)
        columns = []
        for stored, column in zip((self._x, self._y), read, strict=True):
            new = column[changes.positions]
            old = stored[slots]
            old[again] = new[changes.previous[again]]
            stored[slots] = new  # of rows with one slot, the last one stays
            columns += [old, new]
        old_x, new_x, old_y, new_y = columns
        found = self.change_points(PointChanges(old_x, old_y, new_x, new_y))
        return replace(found, rows=changes.positions[found.rows])

    def answer(self, number: int) -> Answer:
        """Return a subscription's present answer."""
        if number in self._empty:
            return self._by_range.of_nothing
        found = self.answers.answer(self._slots.find(number))
        if isinstance(found, tuple):
            return self._values(found)
        if found is None and self._others is not None:
            return self._others.answer(self._slots.find(number))
        return None if found is None else number_answer(found)

    def stats(self) -> FamilyStats:
        """Return statistics."""
        server, answers = self.server.nbytes, self.answers.nbytes
        if self._others is not None:
            server, answers = server + self._others.server_bytes, answers + self._others.answer_bytes
        return FamilyStats(len(self), self._messages, server, self.index.nbytes, answers)

    def _decoded(self, changes: AnswerChanges) -> AnswerChanges:
        """Return changes of sets with values instead of codes, which may stand for other values after the next change."""
        if changes.removed is None or changes.added is None:  # there are none
            return changes
        # Subscriptions with the same set share one tuple of codes, so it is decoded once.
        sets = {codes: self._values(codes) for codes in {*changes.old.tolist(), *changes.new.tolist()}}
        return AnswerChanges(
            changes.rows,
            changes.numbers,
            objects(map(sets.__getitem__, changes.old.tolist())),
            objects(map(sets.__getitem__, changes.new.tolist())),
            objects(self._values((code,) if code >= 0 else ()) for code in changes.removed.tolist()),
            objects(self._values((code,) if code >= 0 else ()) for code in changes.added.tolist()),
        )

    def _values(self, codes: tuple[int, ...]) -> tuple[Value, ...]:
        return tuple(value for _, value in sorted(self._codes.value(code) for code in codes))


def _is_other(point: Any) -> TypeGuard[OtherPoint]:
    """Tell whether a point, as `read` returns it, has a key instead of a number."""
    return point is not None and type(point[1]) is tuple and type(point[1][0]) is int


def _numbers(batch: Batch, name: str) -> Floats:
    """Return the numbers of an attribute, NaN for a row without one; raise `EventError` if no float holds one of them."""
    column = batch.columns.get(name)
    if column is None:
        return np.full(len(batch), np.nan)
    wrong = np.flatnonzero(column.inexact())
    if len(wrong):
        raise EventError(
            f"row {wrong[0]}: a view reads it, and no float of 64 bits holds "
            f"{column.words[wrong[0]]} exactly; send it as a smaller number, or as text",
            name,
        )
    return column.numbers() + 0.0


def _ends(
    bounds: Sequence[Bound], columns: Mapping[str, Column], size: int, widest: float, *, upwards: bool
) -> Floats:
    """Return, per subscription, the end that all bounds leave; an open end is the next float further in."""
    found = np.full(size, widest)
    for bound in bounds:
        end = _constants(bound.term, columns, size)
        if bound.open:
            end = np.nextafter(end, np.inf if upwards else -np.inf)
        found = np.maximum(found, end) if upwards else np.minimum(found, end)
    return np.asarray(found, dtype=np.float64)


def _constants(term: Literal | Parameter, columns: Mapping[str, Column], size: int) -> Floats:
    if isinstance(term, Literal):
        return np.full(size, _float(term.value))
    column = columns[term.name]
    if column.dtype.kind == "O":
        return np.array([_float(value) for value in column.tolist()], dtype=np.float64)
    return np.asarray(column + 0.0, dtype=np.float64)


def _float(value: Any) -> float:
    return float(microseconds(value) if isinstance(value, datetime) else value) + 0.0


def _type_of(compiled: CompiledRangeView) -> str:
    """Return the TYPE of the family's messages, so that they match no other family's subscription."""
    of = "*" if compiled.y is None else term_text(compiled.y)
    by = "" if compiled.x is None else f" by {compiled.x}"
    return f"{compiled.aggregate}({of}) of {compiled.table}{by}{' (time)' if compiled.moments else ''}"
