"""Digests: what differs is not shared."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sequences.running.test_graph import compiled
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Value
from tocsin.model.terms import Parameter, literal
from tocsin.sequences.running.digests import Digest, digest_of_value, digest_rows
from tocsin.sequences.running.matcher import AutomatonMatcher

_PRIME = 2**61 - 1  # integers that differ by it have one hash in Python


def _rows(digest: Digest, count: int) -> list[tuple[int, int]]:
    """The two numbers of each row."""
    first, second = digest_rows(digest, count)
    return list(zip(first.tolist(), second.tolist(), strict=True))


@pytest.mark.parametrize(("one", "other"), [(2**60, 2**60 + _PRIME), (-(2**62), -(2**62) - _PRIME)])
def test_large_integers_with_one_hash_are_distinguished(one: Value, other: Value) -> None:
    assert digest_of_value(literal(one), {}) != digest_of_value(literal(other), {})
    rows = _rows(digest_of_value(Parameter("p"), {"p": np.array([one, other])}), 2)
    assert rows[0] != rows[1]
    assert rows[0] == _rows(digest_of_value(literal(one), {}), 1)[0]


def test_lists_are_distinguished_by_all_of_their_members() -> None:
    one = 1.0
    other = float((np.array([one]).view(np.int64) + _PRIME).view(np.float64)[0])
    column = np.empty(2, dtype=object)
    column[:] = [(one,), (other,)]
    first, second = _rows(digest_of_value(Parameter("p", many=True), {"p": column}), 2)
    assert first != second


def test_subscriptions_of_large_integers_with_one_hash_are_not_merged() -> None:
    runner = AutomatonMatcher(matcher="oracle")
    for number, constant in enumerate((2**60, 2**60 + _PRIME)):
        runner.add(np.array([number]), compiled(f"from s a where a.x = {constant} next s b"), {})
    found = runner.process(TimedBatch([Event("e1", {"x": 2**60}, "s", 1, 1), Event("e2", {}, "s", 2, 2)]))
    assert found.subscriptions.tolist() == [0]
