"""Adversarial workloads, also where everything is done at the first opportunity, with the invariants of the state."""

from __future__ import annotations

import pytest

from tests.contract.adversaries import ADVERSARIES, play
from tests.matching.adaptive.invariants import check_invariants
from tocsin.matching.adaptive.matcher import DEFAULT, EAGER, Adaptive, Thresholds

# With the usual thresholds no cluster of these is reached often enough, or is worth it.
NEVER_HOT = {"many attributes", "residual predicates"}


@pytest.mark.parametrize("thresholds", [DEFAULT, EAGER], ids=["usual", "eager"])
@pytest.mark.parametrize("workload", ADVERSARIES)
def test_matches_are_right_and_invariants_hold(workload: str, thresholds: Thresholds) -> None:
    matcher, hot = Adaptive(thresholds=thresholds), [0.0]

    def check() -> None:
        check_invariants(matcher)
        hot.append(matcher.stats().details["hot clusters"])

    play(matcher, workload, 1, check)
    if thresholds is EAGER or workload not in NEVER_HOT:
        assert matcher.stats().details["plans"] > 0
        assert max(hot) > 0
