"""Domains that grow: new entries are added in parts, and every value is matched right."""

from __future__ import annotations

import numpy as np

from tests.matching.k_index.invariants import check_invariants
from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle
from tocsin.matching.k_index.matcher import KIndex


def _batch(texts: list[str], first: int = 0) -> ConjunctionBatch:
    return ConjunctionBatch.of((first + i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))


def test_a_domain_that_grows_far_is_not_drafted_all_at_once() -> None:
    matcher, oracle = KIndex(), Oracle()
    crowd = [f"a {'<' if i % 3 else '>='} {i % 20} and b = {i}" for i in range(600)]
    growth = ["a = 900", "c > 3", "a = -400", "d <= 2", "c < 8"]
    for each in (matcher, oracle):
        each.add(_batch(crowd))
        each.add(_batch(growth, 1000))
    check_invariants(matcher)
    assert matcher._state.draft.rows.nbytes < 8_000_000
    events = [
        {"a": a, "b": b, "c": 5} for a in (-401, -400, -399, 0, 7, 899, 900, 901, 1.5) for b in range(9)
    ]
    batch = EventBatch.of_dicts(events)
    assert matcher.match(batch).to_lists() == oracle.match(batch).to_lists()
    matcher.remove(np.arange(1100))
    assert matcher.stats().details["entries"] == 0
