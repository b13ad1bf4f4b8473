"""Clusters that are divided into sections: by bounds of one slot and of two, with what is added and removed later."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from tests.matching.adaptive.invariants import check_invariants
from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle
from tocsin.matching.adaptive.dividing import FEW_AT_ONCE, Sizes
from tocsin.matching.adaptive.matcher import EAGER, Adaptive, Thresholds

_EARLY = Thresholds(counted=1, events=64, large=128, sizes=Sizes(checks=32, share=0.9))
_FORMS = [
    "k = 0 and a >= {0} and b <= {1}",
    "k = 0 and a between {0} and {1}",
    "k = 0 and a > {0} and c != 5",
    "k = 0 and b < {1} and c in (1, 2, 3)",
    "k = 0 and s >= 'x{0}' and a < {1}",
    "k = 0 and c is missing",
    "a <= {0} and b >= {1}",
]
_ODD = [2**53 + 1, 2.5, "x51", "", True]  # among them a value between two keys


def _conditions(random: Generator, count: int) -> list[str]:
    drawn = random.integers(0, 100, (count, 2)).tolist()
    return [_FORMS[i % len(_FORMS)].format(*pair) for i, pair in enumerate(drawn)]


def _events(random: Generator, count: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for a, b, c, s in random.integers(0, 100, (count, 4)).tolist():
        row: dict[str, object] = {"k": 0 if c < 90 else 1, "a": a, "b": b, "s": f"x{s}"}
        if c % 3:
            row["c"] = c % 7
        if c % 5 == 0:
            row["a"] = _ODD[b % len(_ODD)]
        rows.append(row)
    return rows


@pytest.mark.parametrize("thresholds", [_EARLY, EAGER], ids=["early", "eager"])
@pytest.mark.parametrize("size", [1, 200], ids=["alone", "together"])
def test_divided_clusters_find_the_same(thresholds: Thresholds, size: int) -> None:
    random = np.random.default_rng(7)
    matcher, oracle = Adaptive(thresholds=thresholds), Oracle()
    count = 900 if size > 1 else 500
    held: set[int] = set()
    was_divided = 0
    for step in range(4):
        batch = ConjunctionBatch.of(
            (count * step + i, to_dnf(parse_condition(text)))
            for i, text in enumerate(_conditions(random, count))
        )
        matcher.add(batch)
        oracle.add(batch)
        held.update(range(count * step, count * (step + 1)))
        for _ in range(3):
            rows = _events(random, 200)
            alone = oracle.match(EventBatch.of_dicts(rows)).to_lists()
            for begin in range(0, len(rows), size):
                some = EventBatch.of_dicts(rows[begin : begin + size])
                assert matcher.match(some).to_lists() == alone[begin : begin + size]
            was_divided += int(matcher.stats().details["divided clusters"])
            check_invariants(matcher)
            gone = random.choice(np.array(sorted(held)), len(held) // (3 if step < 3 else 2), replace=False)
            held.difference_update(gone.tolist())
            matcher.remove(gone)
            oracle.remove(gone)
            check_invariants(matcher)
    assert was_divided > 0
    matcher.remove(np.array(sorted(held), dtype=np.int64))
    check_invariants(matcher)
    assert matcher.stats().conjunctions == 0
    assert matcher.stats().details["divided clusters"] == 0


def test_a_cluster_as_large_as_what_is_divided_at_once_is_divided() -> None:
    matcher, oracle = Adaptive(thresholds=Thresholds(counted=1, events=64)), Oracle()
    random = np.random.default_rng(5)
    texts = [f"k = 0 and a >= {a}" for a in random.integers(0, 1_000_000, FEW_AT_ONCE).tolist()]
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))
    matcher.add(batch)
    oracle.add(batch)
    rows = [{"k": 0, "a": a} for a in random.integers(0, 100_000, 300).tolist()]
    for row in rows:
        matcher.match_one(row)
    assert matcher.stats().details["divided clusters"] == 1
    check_invariants(matcher)
    some = EventBatch.of_dicts(rows[:5])
    assert matcher.match(some).to_lists() == oracle.match(some).to_lists()
