"""Plays random changes of tables to a family of rows, and compares its reports with recomputed answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from datetime import UTC, datetime
from random import Random

import numpy as np

from tocsin.language import Template, parse
from tocsin.language.template.binding import bind_query
from tocsin.language.template.template import bindings_at
from tocsin.model import Value, View, kind_of
from tocsin.model.subscription import Answer, AnswerItem
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import Row, RowChange
from tocsin.views.compilation import compile_view
from tocsin.views.compiled import CompiledRowView
from tocsin.views.oracle import answer_of
from tocsin.views.row_family import RowFamily
from tocsin.views.table import StoredTable

__all__ = ["Play", "view_of"]

VALUES: Sequence[Value] = [
    *(0, 1, 1, 2, 3, 1.0, 2.5, -1, -0.0, 0.1, 0.2, True, False, "x", "xy", 2**60, 2**60 + 1, 1e308, 10**400),
    float("inf"),
    datetime(2026, 1, 1, tzinfo=UTC),
    "2026-01-01T00:00:00Z",
]
KINDS = ["min({})", "max({})", "count({})", "sum({})", "avg({})", "distinct {}"]
SINGLE = [
    *("{a} between 0 and 2", "{b} >= 1", "{a} = 1", "{b} != 1", "{a} in (1, 2, 'x')", "{b} is missing"),
    *("not ({a} < 2 or {b} = 0)", "{b} like 'x%'", "{a} + {b} > 2", "{a} > 0 or {b} > 0", "true"),
    *("{a} <= timestamp '2026-01-01T00:00:00Z'", "{a} = 1 and {a} = 2"),
]
TEMPLATE = "{a} between :low and :high and {b} != :not"


def view_of(text: str) -> View:
    query = parse(text)
    assert isinstance(query, View)
    return query


class Play:
    """Tables `t` and `u`, one family over `t` or over pairs of rows, and subscriptions that come and go."""

    def __init__(self, seed: int, join: str = "", matcher: str | None = None) -> None:
        self.random = Random(seed)  # noqa: S311 - a workload
        self.join = join
        self.tables = {name: StoredTable(name, ("k",)) for name in "tu"}
        self.views: dict[int, View] = {}
        self.free = list(range(40, 0, -3))
        for _ in range(self.random.randrange(12)):
            self.upsert(self.random.choice("tu"))
        plan = self.plan(view_of(self.text("count(*)", "{a} > 0 and {b} > 0")))
        self.family = RowFamily(plan.tables, plan.equal, matcher)
        self.family.load({name: list(table.rows()) for name, table in self.tables.items()})
        self.reported = 0

    # what is asked

    def text(self, selected: str, condition: str) -> str:
        names = (
            {name: f"{self.random.choice('lr')}.{name}" for name in "aby"}
            if self.join
            else {n: n for n in "aby"}
        )
        source = self.join or "from table t"
        return f"select {selected} {source} where {condition}".format(**names)

    def selected(self) -> str:
        rows = ["*", "{y}, {a}", "{a} + {b} as s, {y}"]
        asked = self.random.choice([*KINDS * 2, "count(*)", *rows])
        return asked.replace("{}", self.random.choice(["{y}", "{y}", "{a}", "{y} * 2"]))

    def plan(self, view: View, columns: Mapping[str, np.ndarray] | None = None) -> CompiledRowView:
        plan = compile_view(view, "view", columns)
        assert isinstance(plan, CompiledRowView)
        return plan

    def subscribe(self) -> None:
        condition = " and ".join(f"({self.random.choice(SINGLE)})" for _ in range(self.random.randint(1, 2)))
        view = view_of(self.text(self.selected(), f"{condition} and {{a}} is present and {{b}} is present"))
        self._add([self.free.pop()], view, {})

    def subscribe_many(self) -> None:
        count = min(self.random.randint(1, 6), len(self.free))
        template = Template(self.text(self.selected(), TEMPLATE))
        assert isinstance(template.query, View)
        columns = {
            "low": np.array([self.random.choice([-1, 0, 1, 2]) for _ in range(count)]),
            "high": np.array([self.random.choice([0.5, 1, 2, 1e9]) for _ in range(count)]),
            "not": np.array([self.random.choice([0, 1, "x"]) for _ in range(count)], dtype=object),
        }
        self._add([self.free.pop() for _ in range(count)], template.query, columns)

    def _add(self, numbers: list[int], view: View, columns: Mapping[str, np.ndarray]) -> None:
        self.family.add(np.array(numbers), self.plan(view, columns), columns)
        for row, number in enumerate(numbers):
            bound = bind_query(view, bindings_at(columns, row))
            assert isinstance(bound, View)
            self.views[number] = bound
            assert_same(self.family.answer(number), self.oracle(number))

    def unsubscribe(self) -> None:
        gone = self.random.sample(sorted(self.views), min(len(self.views), self.random.randint(1, 3)))
        self.family.remove(np.array([*gone, 999]))
        for number in gone:
            del self.views[number]
            self.free.append(number)

    def oracle(self, number: int) -> Answer:
        return answer_of(
            self.views[number], {n: [row for _, row in t.rows()] for n, t in self.tables.items()}
        )

    # what changes

    def upsert(self, table: str) -> RowChange | None:
        row: Row = {
            name: self.random.choice(VALUES if self.random.random() < 0.3 else VALUES[:8])
            for name in "aby"
            if self.random.random() < 0.95
        }
        key = self.random.randrange(8)
        slot = self.tables[table].find(key)
        if slot is not None and self.random.random() < 0.4:
            row = {**self.tables[table].row(slot), "y": self.random.choice(VALUES)}
        new: Row = {"k": key, **row}
        slot = self.tables[table].upsert(key, new, 0)
        return None if slot is None else RowChange(table, slot, new)

    def change(self) -> RowChange:
        while True:
            table = self.random.choice("tu")
            if self.random.random() < 0.75:
                change = self.upsert(table)
            else:
                slot = self.tables[table].delete(self.random.randrange(8), 0)
                change = None if slot is None else RowChange(table, slot, None)
            if change is not None:
                return change

    def changes(self, count: int) -> None:
        """Make changes in one call, and compare what each alters with the answers before and after it."""
        answers = {number: self.oracle(number) for number in self.views}
        made: list[RowChange] = []
        expected: list[dict[int, tuple[Answer, Answer]]] = []
        for _ in range(count):
            made.append(self.change())
            now = {number: self.oracle(number) for number in self.views}
            expected.append(
                {n: (answers[n], now[n]) for n in now if canonical(answers[n]) != canonical(now[n])}
            )
            answers = now
        reported: list[dict[int, tuple[Answer, Answer]]] = [{} for _ in made]
        changes = self.family.change(made)
        for place, (row, number) in enumerate(
            zip(changes.rows.tolist(), changes.numbers.tolist(), strict=True)
        ):
            assert number not in reported[row]
            reported[row][number] = changes.old_answer(place), changes.new_answer(place)
            assert_difference(changes, place)
        self.reported += sum(map(len, reported))
        for got, wanted in zip(reported, expected, strict=True):
            assert set(got) == set(wanted)
            for number, (old, new) in wanted.items():
                assert_same(got[number][0], old)
                assert_same(got[number][1], new)
        for number, answer in answers.items():
            assert_same(self.family.answer(number), answer)

    def run(self, steps: int) -> int:
        """Play so many steps; return how many changes were made."""
        made = 0
        for _ in range(steps):
            chance = self.random.random()
            if len(self.views) < 3 or (chance < 0.15 and len(self.free) > 6):
                self.random.choice([self.subscribe, self.subscribe_many])()
            elif chance < 0.2:
                self.unsubscribe()
            else:
                count = self.random.randint(1, 4)
                made += count
                self.changes(count)
        stats = self.family.stats()
        assert stats.subscriptions == len(self.views)
        assert stats.server_bytes > 0
        assert (stats.answer_bytes > 0) is bool(self.views)
        return made


def canonical(answer: Answer) -> object:
    """Return an answer so that two are equal iff they say the same; of values and rows, how many of each."""
    if isinstance(answer, tuple):
        return Counter(_key(one) for one in answer)
    return answer


def _key(item: AnswerItem) -> Hashable:
    if isinstance(item, Mapping):
        return frozenset(
            (name, None if value is None else (kind_of(value), value)) for name, value in item.items()
        )
    return kind_of(item), item


def assert_same(got: Answer, wanted: Answer) -> None:
    """Compare answers; rows also by their order."""
    assert canonical(got) == canonical(wanted)
    if isinstance(got, tuple) and isinstance(wanted, tuple) and got and isinstance(got[0], Mapping):
        assert [_key(one) for one in got] == [_key(one) for one in wanted]


def assert_difference(changes: AnswerChanges, place: int) -> None:
    """Check that what was removed and added makes the new answer of the old one, and nothing is in both."""
    before, after = changes.old_answer(place), changes.new_answer(place)
    if isinstance(before, tuple) and isinstance(after, tuple):
        removed, added = (Counter(map(_key, part)) for part in changes.differences(place))
        old, new = (Counter(map(_key, part)) for part in (before, after))
        assert old - removed + added == new
        assert removed <= old
        assert not removed & added
        assert removed or added
    else:
        assert changes.differences(place) == ((), ())
