"""The points of a family whose y is no number: `min` and `max` give their least or greatest where a range has no number.

They are stored as numbers are, on both sides, with labels in the order of the values instead of the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.model.values import Value
from tocsin.structures.array_types import Bools
from tocsin.structures.order_labels import OrderLabels
from tocsin.views.aggregates.extremes import Extremes, LatestValues
from tocsin.views.answer_changes import AnswerChanges, number_answer, objects
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.kind_order import OtherKey

OtherPoint: TypeAlias = tuple[float, OtherKey]
"""The x of a row, and the key of its value."""

_NOWHERE = (np.nan, np.nan)


class OtherValues:
    """Both sides for values that are no numbers; subscriptions have the slots that they have for numbers."""

    def __init__(self, *, greatest: bool, slots: int) -> None:
        self._server = Extremes(greatest=greatest)
        self._answers = LatestValues()
        self._labels = OrderLabels[OtherKey]()
        self._points: dict[
            int, tuple[float, float]
        ] = {}  # by the row's slot in its table: its x and its label
        if slots:
            self._answers.begin(np.arange(slots), {"value": np.full(slots, np.nan)})

    def load(self, points: Iterable[tuple[int, OtherPoint]]) -> None:
        """Add the points of rows, before there is any."""
        every = dict(points)
        self._labels.retain(key for _, key in every.values())
        self._points = {slot: (x, self._labels.label(key)) for slot, (x, key) in every.items()}
        self._load_server()

    def _load_server(self) -> None:
        x, y = np.array(list(self._points.values()), dtype=np.float64).reshape(-1, 2).T
        self._server.load(np.ascontiguousarray(x), np.ascontiguousarray(y))

    def begin(self, slots: IdArray, lows: Floats, highs: Floats) -> None:
        """Add subscriptions to these ranges."""
        self._answers.begin(slots, self._server.present(lows, highs))

    def end(self, slots: IdArray) -> None:
        """Remove subscriptions."""
        self._answers.end(slots)

    def concerns(self, changes: Iterable[tuple[int, OtherPoint | None]]) -> bool:
        """Tell whether one of these rows is such a point, or was."""
        return any(point is not None or slot in self._points for slot, point in changes)

    def change(
        self,
        changes: Sequence[tuple[int, OtherPoint | None]],
        apply: Callable[[Extremes, LatestValues, PointChanges], AnswerChanges],
    ) -> tuple[AnswerChanges, list[OtherKey]]:
        """Make changes of rows, given by slot, and `apply` them as numbers are.

        Also return the keys that are no longer used, to be released when the changes have been read.
        """
        relabelling = self._labels.retain(point[1] for _, point in changes if point is not None)
        if relabelling is not None and len(relabelling.old):
            x, y = np.array(list(self._points.values())).reshape(-1, 2).T
            moved = zip(x.tolist(), relabelling.apply(y).tolist(), strict=True)
            self._points = dict(zip(self._points, moved, strict=True))
            self._load_server()
            self._answers.relabel(relabelling)
        lines: list[tuple[float, float, float, float]] = []
        unused: list[OtherKey] = []
        for slot, point in changes:
            old = self._points.pop(slot, _NOWHERE)
            if old is not _NOWHERE:
                unused.append(self._labels.value(old[1]))
            new = _NOWHERE
            if point is not None:
                new = self._points[slot] = point[0], self._labels.label(point[1])
            lines.append((*old, *new))
        columns = PointChanges(*np.array(lines, dtype=np.float64).T.copy())
        return apply(self._server, self._answers, columns), unused

    def release(self, keys: Iterable[OtherKey]) -> None:
        """Release keys that `change` returned."""
        self._labels.release(keys)

    def answer(self, slot: int) -> Value | None:
        """Return the least or the greatest value of a subscription, None without any."""
        label = self._answers.answer(slot)
        return None if label is None else self._labels.value(label)[1]

    def combine(
        self, numbers: AnswerChanges, others: AnswerChanges, latest_numbers: LatestValues
    ) -> AnswerChanges:
        """Return the changes of whole answers, by slot: the number, or without one the other value."""
        if not len(numbers):
            slots, changes = others.numbers, others.rows
            old_number = new_number = latest_numbers.values(slots)
            old_label, new_label = others.old, others.new
        elif not len(others):
            slots, changes = numbers.numbers, numbers.rows
            old_number, new_number = numbers.old, numbers.new
            old_label = new_label = self._answers.values(slots)
        else:
            every = np.stack(
                [
                    np.concatenate([numbers.numbers, others.numbers]),
                    np.concatenate([numbers.rows, others.rows]),
                ]
            )
            (slots, changes), which = np.unique(every, axis=1, return_inverse=True)
            which, split = which.reshape(-1), len(numbers)
            old_number, new_number = _followed(numbers, which[:split], slots, latest_numbers)
            old_label, new_label = _followed(others, which[split:], slots, self._answers)
        old = _Answers(old_number, np.where(np.isnan(old_number), old_label, np.nan))
        new = _Answers(new_number, np.where(np.isnan(new_number), new_label, np.nan))
        differs = np.flatnonzero(old.differs(new))
        return AnswerChanges(
            changes[differs],
            slots[differs],
            objects(self._decoded(old, differs)),
            objects(self._decoded(new, differs)),
            *(objects([()] * len(differs)) for _ in range(2)),
        )

    def _decoded(self, answers: _Answers, positions: IdArray) -> list[object]:
        """Return some answers as values."""
        numbers, labels = answers.numbers[positions].tolist(), answers.labels[positions]
        found = [number_answer(number) for number in numbers]
        for position in np.flatnonzero(~np.isnan(labels)).tolist():
            found[position] = self._labels.value(labels.item(position))[1]
        return found

    @property
    def server_bytes(self) -> int:
        """Return the approximate bytes of points and labels."""
        return self._server.nbytes + 200 * len(self._points) + 300 * len(self._labels)

    @property
    def answer_bytes(self) -> int:
        """Return the bytes of the answers."""
        return self._answers.nbytes


class _Answers(Struct, frozen=True):
    """Answers as columns: a number, or without one a label, or neither."""

    numbers: Floats
    labels: Floats

    def differs(self, other: _Answers) -> Bools:
        """Tell which answers differ; NaN equals NaN."""
        same = [
            (one == two) | (np.isnan(one) & np.isnan(two))
            for one, two in ((self.numbers, other.numbers), (self.labels, other.labels))
        ]
        return np.asarray(~(same[0] & same[1]))


def _followed(
    changes: AnswerChanges, which: IdArray, slots: IdArray, latest: LatestValues
) -> tuple[Floats, Floats]:
    """Return the values before and after each line, of which `which` are changes; lines are sorted by slot and then by change.

    Where a line is no change, its value is what the change before left or the next one finds, or else the latest value.
    """
    lines = np.arange(len(slots))
    is_change = np.zeros(len(slots), dtype=np.bool_)
    is_change[which] = True
    old, new = np.full((2, len(slots)), np.nan)
    old[which], new[which] = changes.old, changes.new
    before = np.maximum.accumulate(np.where(is_change, lines, -1))
    after = np.minimum.accumulate(np.where(is_change, lines, len(slots))[::-1])[::-1]
    has_before = (before >= 0) & (slots[before] == slots)
    has_after = ~has_before & (after < len(slots))
    has_after[has_after] = slots[after[has_after]] == slots[has_after]
    kept = latest.values(slots)
    kept[has_before] = new[before[has_before]]
    kept[has_after] = old[after[has_after]]
    return np.where(is_change, old, kept), np.where(is_change, new, kept)
