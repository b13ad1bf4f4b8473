"""`min` and `max` over strings, timestamps and booleans, beside numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin.language import Template, parse
from tocsin.language.template.binding import bind_query
from tocsin.language.template.template import bindings_at
from tocsin.model import Event, View
from tocsin.model.event import DELETIONS
from tocsin.model.options import SubscriptionOptions
from tocsin.structures import order_labels
from tocsin.views.answer_changes import AnswerChanges, same_answer
from tocsin.views.compilation import compile_view
from tocsin.views.oracle import answer_of
from tocsin.views.runtime import ViewRuntime

RANGES = "where x between :low and :high"
TEXTS = [
    *(
        f"select {kind}(y) from table t {RANGES}{rest}"
        for kind in ("min", "max")
        for rest in ("", " and k != -1")
    ),
    f"select min(y * 2) from table t {RANGES}",
]
DAY = datetime(2026, 1, 1, tzinfo=UTC)
STRINGS = ["a", "ab", "b", "ü", "", "z"]
MIXED: list[Any] = [*STRINGS, 1, 2.5, -3, float("inf"), True, False, DAY, DAY + timedelta(days=1), None]


class Followed:
    """A runtime with five templates of 20 ranges each, and the rows of its table."""

    def __init__(self, seed: int, values: list[Any], matcher: str | None = None) -> None:
        self.random = Random(seed)  # noqa: S311 - a workload
        self.values = values
        self.runtime = ViewRuntime(matcher)
        self.runtime.tables.declare("t", "k")
        self.rows: dict[int, dict[str, Any]] = {}
        self.views: dict[int, View] = {}
        self.time = 0

    def subscribe(self, text: str, number: int, count: int) -> None:
        lows = np.array([self.random.randrange(10) for _ in range(count)])
        columns = {"low": lows, "high": lows + self.random.randrange(-1, 6)}
        query = Template(text).query
        assert isinstance(query, View)
        numbers = np.arange(number, number + count)
        self.runtime.add(numbers, compile_view(query, "v", columns), columns, SubscriptionOptions(), "v")
        for row in range(count):
            bound = bind_query(query, bindings_at(columns, row))
            assert isinstance(bound, View)
            self.views[number + row] = bound

    def answers(self) -> dict[int, Any]:
        return {
            number: answer_of(view, {"t": list(self.rows.values())}) for number, view in self.views.items()
        }

    def row(self) -> dict[str, Any]:
        row = {
            "k": self.random.randrange(12),
            "x": self.random.randrange(12),
            "y": self.random.choice(self.values),
        }
        return {name: value for name, value in row.items() if value is not None}

    def events(self, count: int) -> tuple[AnswerChanges, list[dict[int, Any]]]:
        """Process single changes in one batch; also return the answers before and after each."""
        made, answers = [], [self.answers()]
        for _ in range(count):
            self.time += 1
            row = self.row()
            if self.random.random() < 0.3:
                self.rows.pop(row["k"], None)
                made.append(Event("e", {"k": row["k"], DELETIONS[0]: True}, "t", self.time, self.time))
            else:
                self.rows[row["k"]] = row
                made.append(Event("e", row, "t", self.time, self.time))
            answers.append(self.answers())
        updates = [update for event in made if (update := self.runtime.read(event)) is not None]
        return self.runtime.process(updates), answers

    def table(self, count: int) -> tuple[AnswerChanges, list[dict[int, Any]]]:
        """Process an Arrow table, whose values are of one kind."""
        kind = type(self.random.choice([value for value in self.values if value is not None]))
        rows = [self.row() for _ in range(count)]
        rows = [row for row in rows if type(row.get("y", kind())) is kind] if kind is not datetime else []
        answers = [self.answers()]
        for row in rows:
            self.rows[row["k"]] = row
            answers.append(self.answers())
        self.time += 1
        columns = {name: pa.array([row.get(name) for row in rows]) for name in "kxy"} if rows else {}
        ends = np.full(len(rows), self.time)
        none = self.runtime.process([])
        return self.runtime.process_table("t", pa.table(columns), ends) if rows else none, answers

    def check(self, changes: AnswerChanges, answers: list[dict[int, Any]]) -> None:
        found = {
            (int(row), int(number)): (changes.old_answer(i), changes.new_answer(i))
            for i, (row, number) in enumerate(zip(changes.rows, changes.numbers, strict=True))
        }
        assert len(found) == len(changes)
        expected: dict[tuple[int, int], tuple[Any, Any]] = {}
        for row, (before, after) in enumerate(pairwise(answers)):
            for number in before:
                if not same_answer(before[number], after[number]):
                    expected[row, number] = before[number], after[number]
        assert found.keys() == expected.keys()
        for key, (old, new) in expected.items():
            assert same_answer(found[key][0], old), key
            assert same_answer(found[key][1], new), key
        for number, answer in answers[-1].items():
            assert same_answer(self.runtime.answer(number), answer)


@pytest.mark.parametrize(
    ("seed", "values", "room", "matcher"),
    [
        (1, MIXED, None, None),
        (2, [*MIXED, *range(9)], None, "dynamic"),
        (3, STRINGS, None, None),
        (4, [f"{i:02}" for i in range(60)], 256, None),  # labels run out, again and again
        (5, [*(f"{i:02}" for i in range(60)), 7, True], 256, None),
        (6, [1, 2, 3, 4, 5, 6, "dear"], None, None),
    ],
)
def test_answers_agree_with_the_definition(
    seed: int, values: list[Any], room: int | None, matcher: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if room is not None:
        monkeypatch.setattr(order_labels, "_WIDEST", room)
        monkeypatch.setattr(order_labels, "_STEP", 2)
    followed = Followed(seed, values, matcher)
    for number, text in enumerate(TEXTS):
        followed.subscribe(text, 100 * number, 8)
    for step in range(30):
        changes = followed.events if followed.random.random() < 0.6 else followed.table
        followed.check(*changes(followed.random.randrange(1, 8)))
        if step == 10:
            followed.runtime.remove([0, 3, 105])
            for number in (0, 3, 105):
                del followed.views[number]
        if step == 15:  # subscriptions that begin among rows of all kinds, and families that do
            followed.subscribe(TEXTS[0], 1000, 5)
            followed.subscribe(f"select max(y) from table t {RANGES} and x >= 0", 1100, 3)
            followed.subscribe("select min(y) from table t where x <= :low + 0 or x > :high", 1200, 3)
    assert followed.runtime.stats().bytes > 0


def rows_of(*values: Any) -> list[Mapping[str, Any]]:
    return [{"k": k, "x": 1, "y": y} for k, y in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        (["b", "a", "ü"], "a", "ü"),
        (["b", 5, 7, True, DAY], 5, 7),
        ([True, "b", DAY, "a"], "a", "b"),
        ([True, DAY, False], DAY, DAY),
        ([True, False], False, True),
        ([float("inf"), "x"], "x", "x"),
        ([], None, None),
    ],
)
def test_numbers_come_before_strings_timestamps_and_booleans(
    values: list[Any], least: Any, greatest: Any
) -> None:
    for condition in ("x between 0 and 2", "x between 0 and 2 and k >= 0"):
        runtime = ViewRuntime()
        runtime.tables.declare("t", "k")
        for number, kind in enumerate(["min", "max"]):
            query = parse(f"select {kind}(y) from table t where {condition}")
            assert isinstance(query, View)
            runtime.add(np.array([number]), compile_view(query, "v"), {}, SubscriptionOptions(), "v")
        events = [Event("e", row, "t", 1, 1) for row in rows_of(*values)]
        runtime.process([update for event in events if (update := runtime.read(event)) is not None])
        assert [runtime.answer(0), runtime.answer(1)] == [least, greatest]


def test_a_number_hides_the_strings_and_leaves_them_as_they_were() -> None:
    runtime = ViewRuntime()
    runtime.tables.declare("t", "k")
    query = parse("select min(y) from table t where x between 0 and 2")
    assert isinstance(query, View)
    runtime.add(np.array([0]), compile_view(query, "v"), {}, SubscriptionOptions(), "v")

    def put(k: int, y: Any) -> list[tuple[Any, Any]]:
        update = runtime.read(Event("e", {"k": k, "x": 1} | ({} if y is None else {"y": y}), "t", k, 1))
        assert update is not None
        changes = runtime.process([update])
        return [(changes.old_answer(i), changes.new_answer(i)) for i in range(len(changes))]

    assert put(1, "b") == [(None, "b")]
    assert put(2, 7) == [("b", 7)]
    assert put(3, "a") == []
    assert put(2, 5) == [(7, 5)]
    assert put(2, None) == [(5, "a")]
    assert put(3, "c") == [("a", "b")]
