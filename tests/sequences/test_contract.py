"""The oracle obeys its own contract, and the random cases find something."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.sequences.contract import CONTRACT, ORACLE, run
from tests.sequences.scripts import Script, changing_scripts, scripts

# That it agrees with itself needs no test.
_TELLING = [name for name in CONTRACT if not name.startswith("agrees_")]


@pytest.mark.parametrize("check", _TELLING)
def test_the_oracle_obeys(check: str) -> None:
    CONTRACT[check](ORACLE)


def test_a_fair_share_of_the_random_cases_finds_something() -> None:
    """A contract over cases that find nothing would say nothing: at least a third of them find something."""
    found = {"whole": 0, "changing": 0, "several": 0, "made": 0, "folded": 0}

    @settings(max_examples=150, derandomize=True)
    @given(scripts())
    def whole(script: Script) -> None:
        bag = run(ORACLE, script)[-1]
        found["whole"] += bool(bag)
        found["several"] += bag.total() > 2
        found["made"] += any(outcome[0] == "made" for outcome in bag)
        found["folded"] += any(
            len(step[1]) > 1
            for outcome in bag
            if outcome[0] != "made"
            for step in outcome[4]  # type: ignore[attr-defined]
        )

    @settings(max_examples=150, derandomize=True)
    @given(changing_scripts())
    def changing(script: Script) -> None:
        found["changing"] += any(run(ORACLE, script))

    whole()
    changing()
    assert found["whole"] >= 50, found
    assert found["changing"] >= 35, found
    assert found["several"] >= 25, found
    assert found["made"] >= 10, found
    assert found["folded"] >= 8, found
