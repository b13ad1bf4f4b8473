"""The runtime of views: changes as columns, their reports, and interrupted calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin.language import Template, parse
from tocsin.model import Event, Subscription, View
from tocsin.model.errors import EventError, SavedError, SubscriptionError, TocsinError
from tocsin.model.event import DELETIONS
from tocsin.model.options import SubscriptionOptions
from tocsin.model.ticks import StreamTicks
from tocsin.structures.archive import Parts, pack, unpack
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.compilation import compile_view
from tocsin.views.row_family import RowFamily
from tocsin.views.runtime import ViewRuntime

TICKS = StreamTicks()


def view_of(text: str) -> View:
    view = Template(text).query if ":" in text else parse(text)
    assert isinstance(view, View)
    return view


def row(time: int, *, delete: Any = False, **attributes: Any) -> Event:
    marks = {DELETIONS[0]: True} if delete else {}
    present = {name: value for name, value in attributes.items() if value is not None}
    return Event(f"e{time}", {**present, **marks}, "t", time, time)


def new_runtime(*texts: str) -> ViewRuntime:
    runtime = ViewRuntime()
    runtime.tables.declare("t", "k")
    for number, text in enumerate(texts):
        add(runtime, number, text)
    return runtime


def add(runtime: ViewRuntime, number: int, text: str, **columns: Sequence[Any]) -> None:
    arrays = {name: np.array(column, dtype=object) for name, column in columns.items()}
    size = len(next(iter(arrays.values()))) if arrays else 1
    compiled = compile_view(view_of(text), "v", arrays)
    runtime.add(np.arange(number, number + size), compiled, arrays, SubscriptionOptions(), "v")


def process(runtime: ViewRuntime, events: Iterable[Event]) -> AnswerChanges:
    return runtime.process([update for event in events if (update := runtime.read(event)) is not None])


def lines(changes: AnswerChanges) -> list[tuple[Any, ...]]:
    return [
        (changes.rows[i], changes.numbers[i], changes.old_answer(i), changes.new_answer(i))
        for i in range(len(changes))
    ]


COUNT, SUM, DISTINCT = (
    "select count(*) from table t",
    "select sum(x) from table t where x > 0 and y > 0",
    "select distinct y from table t",
)


def test_changes_come_by_row_and_number_with_their_differences() -> None:
    runtime = new_runtime(COUNT, SUM, DISTINCT)
    changes = process(runtime, [row(1, k=1, x=2, y=3), row(2, k=2, x=5), row(3, k=1, delete=True)])
    assert lines(changes) == [
        (0, 0, 0, 1), (0, 1, None, 2), (0, 2, (), (3,)), (1, 0, 1, 2), (2, 0, 2, 1), (2, 1, 2, None), (2, 2, (3,), ()),
    ]  # fmt: skip
    assert [changes.differences(i) for i in (0, 2, 6)] == [((), ()), ((), (3,)), ((3,), ())]
    assert len(process(runtime, [row(0, k=2, x=9)])) == 0  # it is late
    assert (runtime.stats().late, runtime.stats().subscriptions, len(runtime)) == (1, 3, 3)
    assert len(runtime.advance(10)) == 0


def test_numbers_alone_are_floats_and_null_is_nan() -> None:
    runtime = new_runtime("select min(x) from table t where x < 9", "select max(x) from table t where x < 9")
    changes = process(runtime, [row(1, k=1, x=2), row(2, k=1, x=10)])
    assert changes.old.dtype == np.float64
    assert changes.removed is None
    assert np.isnan(changes.new).tolist() == [False, False, True, True]


def test_an_arrow_table_changes_the_same_as_its_rows() -> None:
    rows = [{"k": 1, "x": 2, "y": 3}, {"k": 2, "x": 5, "y": 1}, {"k": 1, "x": 1, "y": 1}]
    one, other = new_runtime(COUNT, SUM, DISTINCT), new_runtime(COUNT, SUM, DISTINCT)
    changes = process(one, [row(1, **attributes) for attributes in rows])
    found = other.process_table("t", pa.Table.from_pylist(rows), np.ones(3, dtype=np.int64))
    assert sorted(map(repr, lines(found))) == sorted(map(repr, lines(changes)))
    assert [other.answer(number) for number in range(3)] == [one.answer(number) for number in range(3)]


def test_an_unreported_change_is_part_of_the_next_report() -> None:
    runtime = new_runtime(COUNT, DISTINCT)

    def report(valid: bool, *rows: Event) -> list[tuple[Any, ...]]:
        changes = process(runtime, rows)
        reported = runtime.report(changes, np.full(len(changes), valid))
        assert valid or not len(reported)
        return [(*line[1:], reported.differences(i)) for i, line in enumerate(lines(reported))]

    assert report(True, row(1, k=1, y=1)) == [(0, 0, 1, ((), ())), (1, (), (1,), ((), (1,)))]
    report(False, row(2, k=2, y=2))
    assert report(True, row(3, k=3, y=3)) == [(0, 1, 3, ((), ())), (1, (1,), (1, 2, 3), ((), (2, 3)))]
    report(False, row(4, k=3, delete=True))
    assert report(True, row(5, k=3, y=3)) == []  # back to the last reported answers
    assert report(True, row(6, k=3, delete=True)) == [(0, 3, 2, ((), ())), (1, (1, 2, 3), (1, 2), ((3,), ()))]


def test_a_report_of_all_changes_returns_them_as_they_are() -> None:
    runtime = new_runtime(COUNT)
    changes = process(runtime, [row(1, k=1)])
    assert runtime.report(changes, np.ones(1, dtype=np.bool_)) is changes


def test_removed_views_change_no_more_and_unknown_numbers_are_passed_over() -> None:
    runtime = new_runtime(COUNT, SUM)
    runtime.remove([0, 7])
    assert lines(process(runtime, [row(1, k=1, x=2, y=3)])) == [(0, 1, None, 2)]
    runtime.remove([1])
    assert (len(runtime), runtime.stats().families) == (0, 0)


def test_errors_name_the_table_and_the_row() -> None:
    runtime = new_runtime("select min(x) from table t where x < 9")
    with pytest.raises(SubscriptionError, match="there is no table `tt`; declare it first"):
        runtime.compile(view_of("select count(*) from table tt"), "v")
    with pytest.raises(EventError, match="needs it, since it is of its key"):
        runtime.read(row(1, x=1))
    with pytest.raises(EventError, match="no float of 64 bits holds"):
        runtime.read(row(1, k=1, x=2**60 + 1))
    runtime.read(Event("e", {"x": 2**60 + 1}, "elsewhere"))


def test_tables_are_saved_and_loaded_before_they_have_views(tmp_path: Path) -> None:
    runtime = new_runtime(COUNT)
    process(runtime, [row(1, k=1)])
    runtime.tables.save(tmp_path / "tables")
    with pytest.raises(TocsinError, match="the table `t` has views"):
        runtime.tables.load(tmp_path / "tables")
    runtime.remove([0])
    assert runtime.tables.load(tmp_path / "tables") == ("t",)
    other = ViewRuntime()
    assert other.tables.load(tmp_path / "tables") == ("t",)
    assert other.tables.keys == {"t": ("k",)}
    add(other, 0, COUNT)
    assert other.answer(0) == 1


def test_a_dry_run_begins_with_empty_tables_and_changes_none() -> None:
    runtime = new_runtime(COUNT)
    process(runtime, [row(1, k=1, x=1)])
    events = [Event("e", {}, "other"), row(1, x=5), row(2, k=1, x=5), row(3, k=2, x=7)]
    changes, refused = runtime.dry_run(view_of("select max(x) from table t where x < 9"), events)
    assert lines(changes) == [(2, 0, None, 5), (3, 0, 5, 7)]
    assert [place for place, _ in refused] == [1]
    assert runtime.answer(0) == 1


def test_an_explanation_has_the_answer_after_the_event() -> None:
    runtime = new_runtime("select max(x) from table t where x < 9")
    process(runtime, [row(1, k=1, x=5)])
    asked = Subscription("v", view_of("select max(x) from table t where x < 9"))
    why = runtime.explain(0, asked, row(2, k=2, x=7), TICKS)
    assert (why.matched, why.answer, why.new_answer, why.reason.truth, why.before) == (True, 5, 7, True, None)
    assert runtime.explain(0, asked, row(0, k=1, x=7), TICKS).outside
    assert runtime.explain(0, asked, Event("e", {}, "other"), TICKS).new_answer == 5


def test_an_interrupted_change_is_followed_from_the_record_of_additions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = new_runtime(COUNT, SUM)
    add(runtime, 2, "select sum(x) from table t where y = :y", y=[1, "one", 2, 3])
    runtime.remove([4])
    process(runtime, [row(1, k=1, x=2, y=1)])

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RowFamily, "change", interrupt)
        with pytest.raises(KeyboardInterrupt):
            process(runtime, [row(2, k=2, x=5, y=1), row(2, k=3, x=1, y=3)])
    expected: Mapping[int, Any] = {0: 3, 1: 8, 2: 7, 3: None, 5: 1}
    assert {number: runtime.answer(number) for number in expected} == expected
    changes = process(runtime, [row(3, k=2, x=6, y=1), row(3, k=4, x=1, y=4)])
    reported = runtime.report(changes, np.ones(len(changes), dtype=np.bool_))
    # Each begins with the answer that was reported last.
    assert lines(reported) == [(0, 1, 2, 9), (0, 2, 2, 8), (1, 0, 1, 4), (1, 1, 9, 10)]


ANSWERS = [
    "select max(x) from table t where x < 900",
    "select distinct y from table t",
    "select x, y from table t where y = 'one' or x = 5",
    "select l.x as one, r.x as other from table t l join table t r on l.y = r.y where l.x < r.x",
    "select count(*) from table t where y is missing",
]


def test_a_restored_runtime_goes_on_like_the_one_it_was_taken_of() -> None:
    runtime = new_runtime(*ANSWERS)
    process(runtime, [row(i, k=i % 7, x=i % 5, y=("one", 2, True, None)[i % 4]) for i in range(20)])
    process(runtime, [row(20, k=3, delete=True)])
    unreported = process(runtime, [row(21, k=8, x=6, y="one"), row(22, k=9, x=3)])
    assert not len(runtime.report(unreported, np.zeros(len(unreported), dtype=np.bool_)))
    parts = unpack(pack(runtime.snapshot(np.arange(5))))
    numbers = np.array([7, 0, 3, -1, 1])  # what each is called in the other runtime
    other = new_runtime()
    other.tables.declare("new", "k")
    for old, new in enumerate(numbers.tolist()):
        if new >= 0:
            add(other, new, ANSWERS[old])
    add(other, 5, COUNT)
    process(other, [row(99, k="old", x=1)])
    prepared = other.prepare(parts, numbers)
    assert (other.answer(5), prepared.left_out) == (1, ())
    other.adopt(prepared)
    assert len(other.tables["new"]) == 0
    assert [other.answer(new) for new in (7, 0, 3, 1)] == [runtime.answer(old) for old in (0, 1, 2, 4)]
    for time in range(23, 40):
        events = [row(time, k=time % 9, x=time % 5, y=("one", 2, True)[time % 3], delete=time % 4 == 0)]
        one, two = (part.report(process(part, events)) for part in (runtime, other))
        kept = [place for place, number in enumerate(one.numbers.tolist()) if number != 3]
        expected = {numbers[one.numbers[place]]: place for place in kept}
        assert {n for n in two.numbers.tolist() if n != 5} == set(expected)
        for place, number in enumerate(two.numbers.tolist()):
            if number != 5:
                was = expected[number]
                assert two.old_answer(place) == one.old_answer(was)
                assert two.new_answer(place) == one.new_answer(was)
                assert two.as_objects().differences(place) == one.as_objects().differences(was)


def test_a_state_that_does_not_fit_is_refused_and_nothing_changes() -> None:
    runtime = new_runtime("select max(x) from table t where x < 9")
    process(runtime, [row(1, k=1, x=5)])
    wide = new_runtime("select count(*) from table t")
    process(wide, [row(1, k=1, x=2**60 + 1)])
    other = ViewRuntime()
    other.tables.declare("t", ["k", "x"])
    one = np.zeros(1, dtype=np.int64)
    parts = runtime.snapshot(one)
    without = Parts(parts.about, {name: part for name, part in parts.members.items() if name != "0/ends"})
    for wrong, reason in (
        (other.snapshot(one), "the table `t` has the key `k`, `x` there, and `k` here"),
        (wide.snapshot(one), "cannot be read by a view: .*no float of 64 bits"),
        (without, "the state of views is damaged: KeyError: 'ends'"),
        (Parts({}, {}), "this is no state of views"),
        (Parts(parts.about | {"format": 9}, parts.members), "another version of Tocsin"),
        (Parts(parts.about, parts.members | {"unreported": np.array([3])}), "is damaged"),
    ):
        with pytest.raises(SavedError, match=reason):
            runtime.prepare(wrong, one)
    assert runtime.answer(0) == 5
    assert ViewRuntime().prepare(parts, one).left_out == ("t",)
