"""Snapshots of partial matches: whatever process goes on from one finds the same matches."""

from __future__ import annotations

import pytest

from tests.sequences.contract import CONTRACT, Subject
from tests.sequences.restarting import RestartingMatcher


@pytest.mark.parametrize("check", CONTRACT)
def test_a_matcher_that_is_restored_before_every_batch_obeys_the_contract(check: str) -> None:
    CONTRACT[check](Subject(RestartingMatcher, share=0.3))
