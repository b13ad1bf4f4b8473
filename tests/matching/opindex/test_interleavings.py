"""Long interleavings of adds, removals, events and new pivots; long segments; very many events."""

from __future__ import annotations

import os
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.interleaving import Step, conditions, play, predicates, steps
from tests.matching.opindex.invariants import check_invariants
from tocsin.language import Cnf, Dnf, Template, parse_condition, to_cnf, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle, Statistics, base, stored_matcher
from tocsin.matching.opindex import matcher as module
from tocsin.matching.opindex import state as arrays
from tocsin.matching.opindex.matcher import OpIndex, OpIndexBs
from tocsin.matching.opindex.state import MOST_EVENTS, MOST_PREDICATES, Top, Total
from tocsin.model.errors import MatcherError

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
NAMES = "abcdefghijkl"

_TESTS = ["in (1, 2)", "not in (1, 'x')", "not in (0, 3)", "in (2, 'x')", "between 1 and 2", "is missing"]
_steps = steps(
    conditions(predicates(NAMES, st.integers(0, 3), _TESTS)),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0, 1, 2, 3, "x"]), max_size=8),
    st.tuples(st.just("drift"), st.sampled_from(NAMES)),
)


@pytest.mark.parametrize("kind", [OpIndex, OpIndexBs])
@settings(max_examples=400 if LONG else 25)
@given(played=st.lists(_steps, min_size=3, max_size=25), seed=st.integers(0, 2**32 - 1))
def test_matches_and_invariants_survive_any_interleaving(
    kind: type[OpIndex], played: list[Step], seed: int
) -> None:
    matcher = kind()

    def drift(step: str, argument: object) -> None:
        if step == "drift":
            matcher.match(EventBatch.of_dicts([{str(argument): -1}] * 1200))

    play(
        matcher,
        played,
        seed,
        normal=lambda condition, random: to_cnf(condition) if random.integers(2) else to_dnf(condition),
        own=drift,
        check=lambda: check_invariants(matcher),
    )
    assert (matcher.stats().conjunctions, matcher.stats().predicates) == (0, 0)
    assert len(matcher.vocabulary.names) == 0


@pytest.mark.parametrize("kind", [OpIndex, OpIndexBs])
def test_long_segments_keep_their_order_while_entries_come_and_go(kind: type[OpIndex]) -> None:
    matcher, oracle = kind(), Oracle()
    random = np.random.default_rng(1)
    held = np.empty(0, dtype=np.int64)
    texts = ["a > {}", "a = {}", "a <= {} and b != 0", "a not in ({}, -1)", "a between 0 and {}"]
    for round_ in range(12):
        ids = np.arange(round_ * 400, (round_ + 1) * 400)
        values = random.integers(0, 60, len(ids))
        forms = [
            to_dnf(parse_condition(texts[id_ % len(texts)].format(v)))
            for id_, v in zip(ids, values, strict=True)
        ]
        batch = ConjunctionBatch.of(zip(ids.tolist(), forms, strict=True))
        matcher.add(batch)
        oracle.add(batch)
        held = np.concatenate([held, ids])
        gone = random.choice(held, size=len(held) // (2 if round_ % 3 else 8), replace=False)
        for ids_ in np.array_split(gone, 5):
            matcher.remove(ids_)
            oracle.remove(ids_)
            check_invariants(matcher)
        held = np.setdiff1d(held, gone)
        events = EventBatch.of_dicts([{"a": int(value), "b": 1} for value in random.integers(-1, 61, 8)])
        assert matcher.match(events).to_lists() == oracle.match(events).to_lists()
    matcher.remove(held)
    check_invariants(matcher)
    assert matcher.stats().details["entries"] == 0


def test_pivots_follow_the_stream() -> None:
    matcher, oracle = OpIndex(), Oracle()
    texts = [f"common = {i % 7} and rare{i % 50} = {i % 3}" for i in range(1500)]
    texts += [f"other{i} = 1" for i in range(2000)]  # so that `common` seems to be rare
    texts += [f"rare{i} = 9" for i in range(50) for _ in range(60)]
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))
    for each in (matcher, oracle):
        each.add(batch)
    assert {matcher.pivots(i)[0] for i in range(1500)} != {("common",)}
    random = np.random.default_rng(0)

    def events(count: int, *, swapped: bool) -> EventBatch:
        rows = []
        for _ in range(count):
            often, seldom = "common", f"rare{random.integers(50)}"
            row = {often: int(random.integers(7))}
            if random.random() < (1.0 if swapped else 0.05):
                row[seldom] = int(random.integers(3))
            if swapped and random.random() < 0.999:
                del row[often]
            rows.append(row)
        return EventBatch.of_dicts(rows)

    for _ in range(40):
        matcher.match(events(200, swapped=False))
    assert all(matcher.pivots(i)[0] != ("common",) for i in range(1500))
    for _ in range(800):
        matcher.match(events(400, swapped=True))
    assert sum(matcher.pivots(i)[0] == ("common",) for i in range(1500)) > 1400
    assert matcher._state.totals[Total.MOVES] > 1400
    check_invariants(matcher)
    some = events(50, swapped=False)
    assert matcher.match(some).to_lists() == oracle.match(some).to_lists()


def test_a_stream_that_does_not_change_moves_nothing() -> None:
    matcher = OpIndex()
    random = np.random.default_rng(0)
    texts = [f"a{random.integers(200)} = 1 and a{random.integers(200)} = 2" for _ in range(3000)]
    matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
    for _ in range(60):
        rows = [{f"a{i}": 1 for i in random.integers(0, 200, 8)} for _ in range(200)]
        matcher.match(EventBatch.of_dicts(rows))
    assert matcher._state.totals[Total.MOVES] <= 30  # one in a hundred, by chance


def test_event_numbers_restart_when_counters_are_full() -> None:
    matcher = OpIndex()
    clauses = to_cnf(parse_condition("(a = 1 or b = 1) and (c = 1 or d = 1)"))
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1 and b = 1"))), (2, clauses)]))
    events = EventBatch.of_dicts([{"a": 1}, {"b": 1, "c": 1}, {"a": 1, "b": 1, "d": 1}])
    wanted = [[], [2], [1, 2]]
    assert matcher.match(events).to_lists() == wanted
    matcher._state.tops[Top.EPOCH] = MOST_EVENTS - 4
    for _ in range(3):
        assert matcher.match(events).to_lists() == wanted
    assert 0 < matcher._state.tops[Top.EPOCH] < 100


def test_a_form_too_long_to_count_is_refused_and_nothing_else_is_lost() -> None:
    matcher = OpIndex()
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1")))]))
    condition = parse_condition(" and ".join(f"a{i} = 1" for i in range(MOST_PREDICATES + 1)))
    with pytest.raises(MatcherError, match="65,537 predicates"):
        matcher.add(ConjunctionBatch.of([(2, to_dnf(condition))]))
    assert matcher.match(EventBatch.of_dicts([{"a": 1}])).to_lists() == [[1]]
    assert sorted(matcher.vocabulary.names.codes) == ["a"]


def test_a_long_clause_form_and_a_long_list() -> None:
    matcher, oracle = OpIndex(), Oracle()
    text = " and ".join(f"(a{i} = 1 or b{i} in ({', '.join(map(str, range(2, 40)))}))" for i in range(130))
    batch = ConjunctionBatch.of([(1, to_cnf(parse_condition(text)))])
    for each in (matcher, oracle):
        each.add(batch)
    full = {f"a{i}": 1 for i in range(130)}
    events = EventBatch.of_dicts([full, {**full, "a7": 2}, {**full, "a7": 2, "b7": 30}, {"a0": 1}])
    assert matcher.match(events).to_lists() == oracle.match(events).to_lists() == [[1], [], [1], []]
    matcher.remove(np.array([1]))
    check_invariants(matcher)


@pytest.mark.parametrize("count", [33, 65, 67, 129, 257, 1025])
def test_a_list_on_an_attribute_that_is_no_pivot_yet_has_room(count: int) -> None:
    matcher = OpIndex()
    members = ", ".join(map(str, range(count)))
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition(f"a in ({members})")))]))
    check_invariants(matcher)
    assert matcher._state.entries.top[0] <= len(matcher._state.entries.rows)
    assert matcher.match(EventBatch.of_dicts([{"a": count - 1}, {"a": count}])).to_lists() == [[1], []]


def test_a_long_list_beside_many_equalities_takes_no_more_room_than_it_needs() -> None:
    matcher = OpIndex()
    ids = np.arange(20_000)
    rows = Template("a = :x").bind_many({"x": ids % 50})
    matcher.add(ConjunctionBatch.of_rows(ids, rows))
    before = matcher.stats().bytes
    members = ", ".join(map(str, range(300)))
    matcher.add(ConjunctionBatch.of([(-1, to_dnf(parse_condition(f"a in ({members})")))]))
    wide = " and ".join(f"({' or '.join(f'{name}{i} = 1' for i in range(40))})" for name in "bc")
    matcher.add(ConjunctionBatch.of([(-2, to_cnf(parse_condition(wide)))]))
    check_invariants(matcher)
    assert matcher.stats().bytes < 3 * before


def test_a_cnf_with_very_many_pivots_is_visited_by_every_event() -> None:
    matcher = OpIndex()
    clause = [" or ".join(f"{name}{i} = 1" for i in range(800)) for name in "ab"]
    matcher.add(ConjunctionBatch.of([(1, to_cnf(parse_condition(f"({clause[0]}) and ({clause[1]})")))]))
    assert matcher.pivots(1) == [(None,)]
    events = [{"a3": 1, "b799": 1}, {"a3": 1}, {"b7": 1}, {"a3": 1, "b7": 2}]
    assert matcher.match(EventBatch.of_dicts(events)).to_lists() == [[1], [], [], []]
    matcher.remove(np.array([1]))
    check_invariants(matcher)


@pytest.mark.parametrize("kind", [OpIndex, OpIndexBs])
def test_text_that_is_a_timestamp_too_satisfies_a_list_once(kind: type[OpIndex]) -> None:
    text = "2020-01-01T00:00:00Z"
    matcher = kind()
    either = f"(a = '{text}' or a = timestamp '{text}')"
    texts = [either, f"{either} and b = 5", f"{either} and (b = 5 or c = 1)"]
    matcher.add(ConjunctionBatch.of((i, to_cnf(parse_condition(t))) for i, t in enumerate(texts)))
    events: list[dict[str, object]] = [
        {"a": text},
        {"a": 7},
        {"a": text, "b": 4},
        {"a": text, "b": 5},
        {"a": "q", "b": 5},
    ]
    for _ in range(2):
        assert matcher.match(EventBatch.of_dicts(events)).to_lists() == [[0], [], [0], [0, 1, 2], []]


@pytest.mark.parametrize(
    ("user", "kernel"),
    [
        *((module, name) for name in ("keep", "choose_pivots", "place", "withdraw", "forget")),
        (stored_matcher, "recall"),
        (base, "take_from"),
    ],
)
@pytest.mark.parametrize("call", ["add", "remove"])
def test_an_interrupt_leaves_nothing_half_done(
    user: ModuleType, kernel: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A signal that comes while a kernel runs is raised when it returns.
    run = getattr(user, kernel)

    def interrupted(*arguments: object) -> object:
        run(*arguments)
        raise KeyboardInterrupt

    texts = [f"a = {i % 5} and b in (1, 2, {i})" for i in range(30)]
    held = {i: to_dnf(parse_condition(text)) for i, text in enumerate(texts)}
    new = {100: to_dnf(parse_condition("a = 1 and b = 2")), 101: to_dnf(parse_condition("s = 'new'"))}
    matcher, oracle = OpIndex(), Oracle()
    matcher.add(ConjunctionBatch.of(held.items()))
    with monkeypatch.context() as patch:
        patch.setattr(user, kernel, interrupted)
        try:
            if call == "add":
                matcher.add(ConjunctionBatch.of(new.items()))
            else:
                matcher.remove(np.array([3, 9, 20]))
        except KeyboardInterrupt:
            is_done = False
        else:
            is_done = True
    if call == "add" and is_done:
        held |= new
    events = EventBatch.of_dicts([{"a": i, "b": 2, "s": "new"} for i in range(5)])
    found = matcher.match(events).to_lists()
    if call == "remove" and matcher.stats().subscriptions < len(
        held
    ):  # once begun, it is ended by the next call
        held = {i: normal for i, normal in held.items() if i not in (3, 9, 20)}
    oracle.add(ConjunctionBatch.of(held.items()))
    assert found == oracle.match(events).to_lists()
    check_invariants(matcher)
    assert matcher.stats().conjunctions == len(held)
    matcher.remove(np.arange(102))
    check_invariants(matcher)
    assert (matcher.stats().conjunctions, matcher.stats().predicates) == (0, 0)


def test_a_subscription_that_cannot_be_placed_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = OpIndex()
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1")))]))

    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(arrays, "with_placements", refuse)
        with pytest.raises(MemoryError):
            matcher.add(
                ConjunctionBatch.of((i, to_dnf(parse_condition(f"b = {i} and s = 'x{i}'"))) for i in (1, 2))
            )
    check_invariants(matcher)
    assert (matcher.stats().subscriptions, matcher.stats().conjunctions, matcher.stats().predicates) == (
        1,
        1,
        1,
    )
    assert sorted(matcher.vocabulary.names.codes) == ["a"]
    matcher.remove(np.array([1, 2]))
    assert matcher.stats().subscriptions == 0


def test_nothing_of_a_batch_is_added_if_one_form_is_refused() -> None:
    matcher = OpIndex()
    long = "(" + " or ".join(f"a{i} = 1" for i in range(MOST_PREDICATES)) + ") and (b = 1 or c = 1)"
    forms: list[tuple[int, Dnf | Cnf]] = [
        (1, to_dnf(parse_condition("a = 1"))),
        (2, to_cnf(parse_condition(long))),
    ]
    with pytest.raises(MatcherError, match="65,538 predicates"):
        matcher.add(ConjunctionBatch.of(forms))
    assert matcher.stats().subscriptions == 0


def test_statistics_and_a_predicate_that_python_answers() -> None:
    statistics = Statistics.of([{"x": 1}] * 2000)
    matcher = OpIndex(statistics=statistics)
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition("price > 2 * open")))]))
    assert matcher.match(
        EventBatch.of_dicts([{"price": 5, "open": 2}, {"price": 3, "open": 2}])
    ).to_lists() == [[1], []]


def test_an_event_is_counted_once_however_often_it_is_matched() -> None:
    matcher = OpIndex()
    ids = np.arange(30_000)
    matcher.add(ConjunctionBatch.of_rows(ids, Template("a = :x").bind_many({"x": ids})))
    matcher.match(EventBatch.of_dicts([{"a": 1}]))
    assert matcher._state.attributes.seen[matcher.vocabulary.names.codes["a"]] == 1.0


def test_a_name_that_comes_again_is_as_unknown_as_a_new_one() -> None:
    matcher = OpIndex()
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition("old = 1")))]))
    matcher.match(EventBatch.of_dicts([{"old": 1}] * 2000))
    matcher.remove(np.array([1]))
    matcher.add(ConjunctionBatch.of([(2, to_dnf(parse_condition("new1 = 1 and new2 = 1")))]))
    assert matcher.pivots(2) == [("new1",)]
