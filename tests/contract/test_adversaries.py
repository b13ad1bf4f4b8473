"""Every registered matcher agrees with the oracle on the workloads that are hardest for an index."""

from __future__ import annotations

import pytest

from tests.contract.adversaries import ADVERSARIES, play
from tocsin.matching import create_matcher, registered_matchers

MATCHERS = sorted(set(registered_matchers()) - {"oracle"})
SIZES = [pytest.param(1, id="usual"), pytest.param(5, id="large", marks=pytest.mark.long)]


# A workload's matchers are next to each other: the oracle's answers are kept for them.
@pytest.mark.parametrize("matcher", MATCHERS)
@pytest.mark.parametrize("workload", ADVERSARIES)
@pytest.mark.parametrize("size", SIZES)
def test_a_matcher_agrees_with_the_oracle(matcher: str, workload: str, size: int) -> None:
    play(create_matcher(matcher), workload, size)
