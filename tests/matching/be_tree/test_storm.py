"""Very many random changes: the answers stay right, and nothing is left behind."""

from __future__ import annotations

from tests.matching.be_tree.invariants import check_invariants
from tests.matching.storm import storm
from tocsin.matching.be_tree.matcher import BeTree


def test_a_storm_of_changes_leaves_nothing_behind() -> None:
    matcher = BeTree(window=500)
    sizes = storm(matcher, 30_000, lambda: check_invariants(matcher))
    assert matcher.stats().details["nodes"] == 1
    assert len(matcher.vocabulary.names) == 0
    assert max(sizes[3:]) <= 1.5 * sizes[2]
