"""Very many random changes: the answers stay right, and nothing is left behind."""

from __future__ import annotations

from tests.matching.adaptive.invariants import check_invariants
from tests.matching.storm import storm
from tocsin.matching.adaptive.matcher import Adaptive


def test_a_storm_of_changes_leaves_nothing_behind() -> None:
    matcher = Adaptive()
    sizes = storm(matcher, 30_000, lambda: check_invariants(matcher))
    assert matcher.stats().details["access paths"] == 1
    assert len(matcher.vocabulary.names) == 0
    assert max(sizes[3:]) <= 1.5 * sizes[2]
