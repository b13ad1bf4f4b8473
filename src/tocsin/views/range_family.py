"""Views of one aggregate over a range of one attribute: rows are points, messages are rectangles, arrays throughout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import NoneType
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tocsin.language.printer import term_text
from tocsin.language.semantics import value_of
from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model.errors import EventError, TocsinError
from tocsin.model.subscription import Answer
from tocsin.model.terms import Attribute, Literal, Parameter
from tocsin.model.timestamps import microseconds
from tocsin.model.values import Kind as ValueKind
from tocsin.model.values import Value, kind_of
from tocsin.structures.interning import InterningTable
from tocsin.structures.slots import SlotMap
from tocsin.views.aggregates.base import Reads
from tocsin.views.aggregates.registry import range_aggregate
from tocsin.views.answer_changes import NO_CHANGES, AnswerChanges, number_answer, objects
from tocsin.views.batch import Batch, BatchChanges
from tocsin.views.cells import ABSENT
from tocsin.views.cells import Column as CellColumn
from tocsin.views.changes import Floats, PointChanges, Row, RowChange
from tocsin.views.compiled import Bound, CompiledRangeView, CompiledView
from tocsin.views.coverage import Coverage
from tocsin.views.family import Contents, FamilyStats
from tocsin.views.numbers import WIDEST, moment, number
from tocsin.views.range_index import new_range_index

_NOWHERE: Final = (math.nan, math.nan)  # where a row is that is no point


class RangeFamily:
    """Follows the points of a table's rows; its subscriptions are ranges in an index.

    Ranges and answers are held by slot. With `check` the server's side knows the subscribed ranges, and sends no message
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
        self._y_name = "" if self._compiled.y is None else term_text(self._compiled.y)
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
            self.index.add(slots, lows, highs)
            if self.coverage is not None:
                self.coverage.add(lows, highs)
                pairs = zip(lows.tolist(), highs.tolist(), strict=True)
                self._ranges.update(zip(slots.tolist(), pairs, strict=True))

    def change_points(self, changes: PointChanges) -> AnswerChanges:
        """Follow changes of points, and return the answers that change."""
        messages = self.server.reformulate(changes)
        if self.coverage is not None:
            messages = messages.take(self.coverage.concerns(messages))
        self._messages += len(messages)
        answers = self.answers.apply(messages, self.index.match(messages))
        return replace(answers, numbers=self._slots.keys(answers.numbers))

    # row by row

    def load(self, rows: Contents) -> None:
        """Read the present rows of its table."""
        points = [self._enter(row) for _, row in rows[self._compiled.table]]
        x, y = np.array(points, dtype=np.float64).reshape(len(points), 2).T
        there = ~np.isnan(x)
        self.load_points(x[there], y[there])

    def add(self, numbers: IdArray, compiled: CompiledView, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""
        assert isinstance(compiled, CompiledRangeView)  # noqa: S101 - the caller chose the family by it
        size = len(numbers)
        lows = _ends(compiled.lows, columns, size, -WIDEST, upwards=True)
        highs = _ends(compiled.highs, columns, size, WIDEST, upwards=False)
        self.add_ranges(numbers, lows, highs)

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; those that are not there are passed over."""
        self._empty.difference_update(numbers.tolist())
        slots = self._slots.give(numbers.tolist())
        if not len(slots):
            return
        self.index.remove(slots)
        self.answers.end(slots)
        if self.coverage is not None:
            lows, highs = np.array([self._ranges.pop(slot) for slot in slots.tolist()]).T.copy()
            self.coverage.remove(lows, highs)

    def change(self, changes: Sequence[RowChange]) -> AnswerChanges:
        """Follow changes of its table, and return the answers that change."""
        old: list[tuple[float, float]] = []
        new: list[tuple[float, float]] = []
        gone: list[float] = []
        for one in changes:
            old.append(_NOWHERE if one.old is None else self._point(one.old))
            new.append(_NOWHERE if one.new is None else self._enter(one.new))
            gone.append(old[-1][1])
        answers = NO_CHANGES
        if old != new:  # most changes concern few of many families
            old_x, old_y = np.array(old, dtype=np.float64).reshape(len(old), 2).T.copy()
            new_x, new_y = np.array(new, dtype=np.float64).reshape(len(new), 2).T.copy()
            answers = self._decoded(self.change_points(PointChanges(old_x, old_y, new_x, new_y)))
        if self._by_range.reads is Reads.VALUE:
            for code in gone:
                if not math.isnan(code):
                    self._codes.release_one(int(code))
        return answers

    # a batch of rows, by the column

    @property
    def batch_columns(self) -> tuple[str, ...] | None:
        """Return the attributes that `change_batch` reads; None if it reads the changed rows."""
        x, y = self._compiled.x, self._compiled.y
        if (
            self._compiled.moments
            or self._by_range.reads is Reads.VALUE
            or not isinstance(y, (Attribute, NoneType))
        ):
            return None
        return tuple({*(() if x is None else (x,)), *(() if y is None else (y.path,))})

    def check_batch(self, batch: Batch) -> None:
        """Raise `EventError` for a batch with a number that no float holds, where this family looks at it."""
        if self.batch_columns is None:
            for row in batch.rows:
                self.check(row)
            return
        for name in self.batch_columns:
            column = batch.columns.get(name)
            if column is not None and (name == self._compiled.x or self._by_range.reads is Reads.NUMBER):
                wrong = np.flatnonzero(column.inexact())
                if len(wrong):
                    raise EventError(
                        f"row {wrong[0]}: a view looks at it, and no float of 64 bits holds "
                        f"{column.words[wrong[0]]} exactly; send it as a smaller number, or as text",
                        name,
                    )

    def change_batch(self, changes: BatchChanges) -> AnswerChanges:
        """Follow the rows of a batch, and return the answers that change, by the row's place in the batch."""
        if self.batch_columns is None:
            found = self.change(changes.rows).as_objects()  # whether any row changes an answer or not
        else:
            old_x, old_y = self._points(changes.old, changes.existed)
            new_x, new_y = self._points(changes.new, np.ones(len(changes.slots), dtype=np.bool_))
            found = self.change_points(PointChanges(old_x, old_y, new_x, new_y))
        return replace(found, rows=changes.places[found.rows])

    def _points(self, columns: Mapping[str, CellColumn], there: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        compiled = self._compiled
        x = np.zeros(len(there)) if compiled.x is None else columns[compiled.x].numbers() + 0.0
        x = np.clip(x, -WIDEST, WIDEST)
        y = np.zeros(len(there))
        if isinstance(compiled.y, Attribute):
            column = columns[compiled.y.path]
            if self._by_range.reads is Reads.NUMBER:
                y = column.numbers() + 0.0
                y[np.isinf(y)] = np.nan
            else:
                y[column.kinds == ABSENT] = np.nan
        none = ~there | np.isnan(x) | np.isnan(y)
        x[none] = y[none] = np.nan
        return x, y

    def check(self, row: Row) -> None:
        """Raise `EventError` for a row with a number that no float holds, where this family looks at it."""
        self._point(row, known=False)

    def _enter(self, row: Row) -> tuple[float, float]:
        """Return a new row as a point, and count a use of its value's code, if values have codes."""
        x, y = self._point(row, known=False)
        if self._by_range.reads is not Reads.VALUE or math.isnan(x):
            return x, y
        value = value_of(self._compiled.y, row)  # type: ignore[arg-type]
        assert value is not None  # noqa: S101 - it is a point
        return x, float(self._codes.acquire((kind_of(value), value)))

    def _point(self, row: Row, *, known: bool = True) -> tuple[float, float]:
        """Return a row as a point, `_NOWHERE` if it is none; a value has its code if it is `known`, else 0."""
        compiled = self._compiled
        x = 0.0
        if compiled.x is not None:
            x = (moment if compiled.moments else number)(row.get(compiled.x), compiled.x) + 0.0
            if math.isnan(x):
                return _NOWHERE
            x = max(min(x, WIDEST), -WIDEST)
        if compiled.y is None:
            return x, 0.0
        value = value_of(compiled.y, row)
        if self._by_range.reads is Reads.NUMBER:
            y = number(value, self._y_name)
            return (x, y + 0.0) if math.isfinite(y) else _NOWHERE
        if value is None:
            return _NOWHERE
        return x, float(
            self._codes.codes[kind_of(value), value]
        ) if known and self._by_range.reads is Reads.VALUE else 0.0

    def answer(self, number: int) -> Answer:
        """Return a subscription's present answer."""
        if number in self._empty:
            return self._by_range.of_nothing
        found = self.answers.answer(self._slots.find(number))
        if isinstance(found, tuple):
            return self._values(found)
        return None if found is None else number_answer(found)

    def stats(self) -> FamilyStats:
        """Return what is held."""
        return FamilyStats(
            len(self),
            self._messages,
            self.server.nbytes,
            self.index.nbytes,
            self.answers.nbytes,
        )

    def _decoded(self, changes: AnswerChanges) -> AnswerChanges:
        """Return changes of sets with values in the place of codes, which may stand for other values after the next change."""
        if changes.removed is None or changes.added is None:
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
    """Return the TYPE that the family's messages carry, so that no other's subscription hears them."""
    of = "*" if compiled.y is None else term_text(compiled.y)
    by = "" if compiled.x is None else f" by {compiled.x}"
    return f"{compiled.aggregate}({of}) of {compiled.table}{by}{' (time)' if compiled.moments else ''}"
