"""Views in the engine: every answer, after every change, equals the answer recomputed from all rows."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from random import Random

import pytest

from tocsin import Engine, read_event
from tocsin.engine import ManualClock
from tocsin.language import parse
from tocsin.model import View
from tocsin.model.subscription import Answer
from tocsin.views.answer_changes import same_answer
from tocsin.views.oracle import answer_of

KINDS = [
    *("min(y)", "max(y)", "count(*)", "count(y)", "sum(y)", "avg(y)", "distinct y", "distinct s"),
    *("min(s)", "max(s)", "min(t)", "max(t)"),
]
NUMBERS = [0, 1, 2, 3, 0.5, 2.5, -1, 1e16, 0.1]


def a_condition(random: Random, prefix: str = "") -> str:
    low, high = sorted(random.choices(range(-1, 5), k=2))
    ranges = [
        f"{prefix}x between {low} and {high}",
        f"{prefix}x > {low}",
        f"{prefix}x <= {high} and {prefix}x >= {low}",
        f"{prefix}x = {low}",
        f"{prefix}x < {high}.5",
        f"{prefix}t >= timestamp '2026-01-0{high + 2}T00:00:00Z'",
        f"{prefix}x between {high + 1} and {low}",
    ]
    further = ["", "", "", f" and {prefix}z > {low}", f" and {prefix}s = 'a'", f" or {prefix}z = {high}"]
    return random.choice(ranges) + random.choice(further)


def a_view(random: Random) -> str:
    kind = random.choice(KINDS)
    if random.random() < 0.2:
        return f"select {kind} from table r"
    if random.random() < 0.7:
        return f"select {kind} from table r where {a_condition(random)}"
    if random.random() < 0.3:
        return f"select {random.choice(['*', 'x', 'x, y as why'])} from table r where {a_condition(random)}"
    tables = random.choice(["table r a join table q b on a.x = b.x", "table r a join table r b on a.z = b.x"])
    what = random.choice(
        ["*", "a.y, b.s", "min(a.y)", "sum(b.y)", "distinct a.s", "count(*)", "max(b.s)", "min(a.t)"]
    )
    return f"select {what} from {tables} where {a_condition(random, 'a.')}"


def a_row(random: Random) -> dict[str, object]:
    row: dict[str, object] = {"k": random.randrange(8)}
    for name in "xz":
        if random.random() < 0.9:
            row[name] = random.choice([*range(-1, 5), 0.5, "text", True, math.inf])
    if random.random() < 0.9:
        row["y"] = random.choice([*NUMBERS, "text", False, -math.inf])
    if random.random() < 0.8:
        row["s"] = random.choice(["a", "b", 1, 1.0, True])
    if random.random() < 0.5:
        moment = datetime(2026, 1, random.randrange(1, 8), tzinfo=UTC)
        row["t"] = random.choice([moment, moment.isoformat(), "soon"])
    return row


class Double:
    """An engine, and beside it the rows and answers by the definition."""

    def __init__(self, random: Random, view_matcher: str | None = None) -> None:
        self.random = random
        self.engine = Engine(view_matcher=view_matcher, clock=ManualClock())
        self.rows: dict[str, dict[object, dict[str, object]]] = {"r": {}, "q": {}}
        for name in self.rows:
            self.engine.table(name, key="k")
        self.views: dict[str, View] = {}
        self.answers: dict[str, Answer] = {}
        self.made = 0

    def subscribe(self) -> None:
        text = a_view(self.random)
        self.made += 1
        id_ = f"v{self.made}"
        view = parse(text)
        assert isinstance(view, View)
        self.views[id_] = view
        self.answers[id_] = self._answer(view)
        reported = self.engine.subscribe(text, id=id_)
        assert same_answer(reported.answer, self.answers[id_]), text
        assert [(note.old, note.event_ids) for note in reported.notifications] == [(None, ())]

    def unsubscribe(self) -> None:
        if self.views:
            id_ = self.random.choice(list(self.views))
            self.engine.unsubscribe(id_)
            del self.views[id_], self.answers[id_]

    def publish(self, count: int) -> None:
        events = []
        expected: list[dict[str, tuple[Answer, Answer]]] = []
        for _ in range(count):
            name = self.random.choice("rrrq")
            row = a_row(self.random)
            if self.random.random() < 0.2:
                self.rows[name].pop(row["k"], None)
                events.append({"$stream": name, "k": row["k"], "$delete": True})
            else:
                self.rows[name][row["k"]] = row
                events.append({"$stream": name, **row})
            expected.append(self._changed())
        if self.random.random() < 0.5:
            reported = [self.engine.publish(_without(e), stream=str(e["$stream"])) for e in events]
        else:  # many at once, each with its place for its id
            reported = [[] for _ in events]
            made = [
                read_event(_without(e), stream=str(e["$stream"]), time=0, id=str(place))
                for place, e in enumerate(events)
            ]
            for note in self.engine.publish_many(made, batch_size=self.random.choice([None, 2])):
                reported[int(note.event_ids[0])].append(note)
        for notes, changed in zip(reported, expected, strict=True):
            assert sorted(note.subscription for note in notes) == sorted(changed)
            for note in notes:
                old, new = changed[note.subscription]
                assert same_answer(note.old, old)
                assert same_answer(note.new, new)
                assert note.view
                if isinstance(note.old, tuple) and isinstance(note.new, tuple):
                    assert same_answer((*note.old, *note.added), (*note.new, *note.removed))
        for id_, answer in self.answers.items():
            assert same_answer(self.engine.answer(id_), answer)

    def _changed(self) -> dict[str, tuple[Answer, Answer]]:
        changed = {}
        for id_, view in self.views.items():
            new = self._answer(view)
            if not same_answer(self.answers[id_], new):
                changed[id_] = (self.answers[id_], new)
                self.answers[id_] = new
        return changed

    def _answer(self, view: View) -> Answer:
        return answer_of(view, {name: list(rows.values()) for name, rows in self.rows.items()})  # type: ignore[arg-type]


def _without(event: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in event.items() if name != "$stream"}


def _run(seed: int, rounds: int, view_matcher: str | None = None) -> None:
    double = Double(Random(seed), view_matcher)  # noqa: S311
    for _ in range(rounds):
        for _ in range(double.random.randrange(6)):
            double.subscribe()
        if double.random.random() < 0.3:
            double.unsubscribe()
        double.publish(double.random.randrange(1, 8))


@pytest.mark.parametrize("seed", range(4))
def test_answers_agree_with_the_definition(seed: int) -> None:
    _run(seed, 12)


@pytest.mark.parametrize("view_matcher", ["dynamic", "opindex", "counting", "points"])
def test_reformulated_subscriptions_live_in_any_matcher(view_matcher: str) -> None:
    _run(7, 4, view_matcher)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_answers_agree_with_the_definition_over_many_changes(seed: int) -> None:
    _run(seed, 60)
