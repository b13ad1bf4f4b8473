"""Long interleavings of adds, removals and events; long posting lists; nothing is left behind."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.interleaving import Step, conditions, play, predicates, steps
from tests.matching.k_index.invariants import check_invariants
from tocsin.language import parse_condition, to_cnf, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle
from tocsin.matching.k_index.matcher import KIndex
from tocsin.matching.k_index.state import LEAF, MOST_PREDICATES
from tocsin.model.errors import MatcherError

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
NAMES = "abcdefgh"

_TESTS = [
    "in (1, 2)",
    "not in (1, 'x')",
    "not in (0, 3)",
    "in (2, 'x')",
    "between 1 and 2",
    "is missing",
    "not between 1 and 5",
    "between 0.5 and 3",
    "is present",
    "> 100000",
]
_VALUES = [0, 1, 2, 3, "x", 2.5, -9, 8, 200000]
_steps = steps(
    conditions(predicates(NAMES, st.sampled_from([0, 1, 2, 3, 7, -4, 2.5]), _TESTS)),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(_VALUES), max_size=8),
)


@pytest.mark.parametrize("expansion", [0, 6, 4096])
@settings(max_examples=400 if LONG else 20)
@given(played=st.lists(_steps, min_size=3, max_size=20), seed=st.integers(0, 2**32 - 1))
def test_matches_and_invariants_survive_any_interleaving(
    expansion: int, played: list[Step], seed: int
) -> None:
    matcher = KIndex(expansion=expansion)
    play(
        matcher,
        played,
        seed,
        normal=lambda condition, random: to_cnf(condition) if random.integers(2) else to_dnf(condition),
        own=lambda *_: None,
        check=lambda: check_invariants(matcher),
    )
    assert (matcher.stats().conjunctions, matcher.stats().predicates) == (0, 0)
    assert len(matcher.vocabulary.names) == 0
    details = matcher.stats().details
    assert [details[name] for name in ("keys", "lists", "entries", "distinct expressions")] == [0] * 4


def test_long_lists_keep_their_order_while_entries_come_and_go() -> None:
    matcher, oracle = KIndex(), Oracle()
    random = np.random.default_rng(1)
    held = np.empty(0, dtype=np.int64)
    fresh = 0
    for round_ in range(8):
        ids = np.arange(fresh, fresh + 600)
        fresh += 600
        texts = [
            f"a >= {i % 3} and b != {i}" if i % 2 else f"a = {i % 3} and c > {i}.5" for i in ids.tolist()
        ]
        batch = ConjunctionBatch.of(
            (i, to_dnf(parse_condition(text))) for i, text in zip(ids.tolist(), texts, strict=True)
        )
        matcher.add(batch)
        oracle.add(batch)
        held = np.concatenate([held, ids])
        gone = random.choice(held, size=len(held) // (2 if round_ % 3 else 6), replace=False)
        for part in np.array_split(gone, 4):
            matcher.remove(part)
            oracle.remove(part)
            check_invariants(matcher)
        held = np.setdiff1d(held, gone)
        events = EventBatch.of_dicts(
            [{"a": int(a), "b": int(b), "c": int(b)} for a, b in random.integers(0, 900, (6, 2)) % [4, 900]]
        )
        assert matcher.match(events).to_lists() == oracle.match(events).to_lists()
    assert len(held) > 2 * LEAF
    matcher.remove(held)
    check_invariants(matcher)
    assert matcher.stats().details["entries"] == 0


def test_memory_is_used_again() -> None:
    matcher = KIndex()
    texts = [f"a{i % 7} >= {i % 50} and b between {i % 9} and {i % 9 + 20} and c = {i}" for i in range(500)]
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))
    matcher.add(batch)
    sizes = []
    for _ in range(30):
        matcher.remove(np.arange(500))
        matcher.add(batch)
        sizes.append(matcher.stats().bytes)
    assert len(set(sizes[5:])) == 1


def test_a_form_too_long_is_refused_and_nothing_else_is_lost() -> None:
    matcher = KIndex()
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1")))]))
    condition = parse_condition(" and ".join(f"a{i} = 1" for i in range(MOST_PREDICATES + 1)))
    with pytest.raises(MatcherError, match="65,537 predicates"):
        matcher.add(ConjunctionBatch.of([(2, to_dnf(condition))]))
    assert len(matcher.vocabulary.names) == 1
    assert matcher.match(EventBatch.of_dicts([{"a": 1}])).to_lists() == [[1]]


def test_a_batch_that_does_not_fit_is_refused_and_nothing_else_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = KIndex()
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition("a0 >= 1")))]))
    texts = [f"a{i % 9} >= {i} and b = {i}" for i in range(1000)]
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts, 2))
    monkeypatch.setattr("tocsin.matching.k_index.postings_writer._LARGE", 1 << 16)
    monkeypatch.setattr("tocsin.matching.k_index.postings_writer.available_mb", lambda: 0.1)
    with pytest.raises(MatcherError, match=r"k-index does not fit: .* smaller `expansion`"):
        matcher.add(batch)
    check_invariants(matcher)
    assert matcher.match(EventBatch.of_dicts([{"a0": 5}, {"a0": 500, "b": 9}])).to_lists() == [[1], [1]]
    monkeypatch.undo()
    matcher.add(batch)
    assert matcher.match(EventBatch.of_dicts([{"a0": 500, "b": 9}])).to_lists() == [[1, 11]]


def test_an_interrupted_addition_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = KIndex()
    first = ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1 and b >= 3")))])
    matcher.add(first)
    texts = [f"a{i} between 0 and 99 and b <= {i}" for i in range(200)]
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))
    calls = []

    def fail(state: object, entries: int) -> object:
        calls.append(entries)
        if len(calls) > 3:
            raise MemoryError
        return grow(state, entries)  # type: ignore[arg-type]

    from tocsin.matching.k_index import state as arrays  # noqa: PLC0415 - it is changed here

    grow = arrays.with_entries
    monkeypatch.setattr(arrays, "with_entries", fail)
    with pytest.raises(MemoryError):
        matcher.add(batch)
    monkeypatch.undo()
    check_invariants(matcher)
    assert (matcher.stats().subscriptions, matcher.stats().conjunctions) == (1, 1)
    assert matcher.match(EventBatch.of_dicts([{"a": 1, "b": 3, "a7": 5}])).to_lists() == [[1]]
    matcher.add(batch)
    assert matcher.match(EventBatch.of_dicts([{"a7": 5, "b": 7}])).to_lists() == [[7]]


def test_of_a_batch_with_conjunctions_and_clauses_either_all_is_added_or_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = KIndex()
    matcher.add(ConjunctionBatch.of([(0, to_dnf(parse_condition("a > 1")))]))
    texts = [f"(b{i} = 'x{i}' or c in ('y{i}', 'z')) and a = {i}" for i in range(3000)]
    clauses = [(i, to_cnf(parse_condition(text))) for i, text in enumerate(texts, 2)]
    batch = ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1"))), *clauses])
    monkeypatch.setattr("tocsin.matching.k_index.postings_writer._LARGE", 1 << 14)
    monkeypatch.setattr("tocsin.matching.k_index.postings_writer.available_mb", lambda: 0.01)
    with pytest.raises(MatcherError, match="k-index does not fit"):
        matcher.add(batch)
    check_invariants(matcher)
    vocabulary = matcher.vocabulary
    tables = (vocabulary.names, vocabulary.symbols, vocabulary.predicates, vocabulary.patterns)
    assert [len(table) for table in tables] == [1, 0, 0, 0]
    events = EventBatch.of_dicts([{"a": 1}, {"a": 2}])
    assert matcher.match(events).to_lists() == [[], [0]]
    monkeypatch.undo()
    matcher.add(batch)
    assert matcher.match(events).to_lists() == [[1], [0]]
