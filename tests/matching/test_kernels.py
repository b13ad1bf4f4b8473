from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def versions(matcher: str) -> dict[str, int]:
    """Return how many compiled versions of each kernel a new process has, once it has used a matcher."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.matching.exercise", matcher],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, int] = json.loads(ended.stdout)
    return found


@pytest.mark.parametrize("matcher", ["propagation", "static"])
def test_every_kernel_that_python_calls_is_compiled_once(matcher: str) -> None:
    # The first process leaves compiled code behind. In the second, what only kernels call is not loaded by
    # itself: Numba compiles that anew for each constant it is called with, which is no fault.
    versions(matcher)
    counted = versions(matcher)
    assert {name: count for name, count in counted.items() if count > 1} == {}
    called = {name.rpartition(".")[2] for name, count in counted.items() if count}
    assert called >= {
        "register_predicates",
        "place",
        "post",
        "match",
        "gather_ids",
        "take_out",
        "unpost",
        "recall_slots",
        "expect",
        "begins_with",
        "find_contained",
    }
