"""The tests of all kernels over again, without the compiler and with every index checked.

What a kernel does must not depend on how it is run: NumPy's integers warn where compiled ones wrap around, and
compiled code reads beyond the end of an array without a word.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).relative_to(ROOT)


@pytest.mark.parametrize("mode", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_structures_pass_their_tests_in_the_other_modes(mode: str) -> None:
    assert_passes(mode, str(HERE.parent), f"--ignore={HERE}")


def test_matchers_agree_with_the_oracle_without_the_compiler() -> None:
    large = "--ignore=tests/contract/test_adversaries.py"  # which has no small workloads
    assert_passes("NUMBA_DISABLE_JIT", "tests/contract", large, "-k", "not independent_evaluator")


def test_strategies_are_right_without_the_compiler() -> None:
    assert_passes("NUMBA_DISABLE_JIT", "tests/dissemination/test_strategies.py", "-k", "every_changed_answer")


def assert_passes(mode: str, *arguments: str) -> None:
    # What pytest tells its own workers is not meant for a pytest within them.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT,
        env={**inherited, mode: "1", "TOCSIN_TEST_PROFILE": "brief"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
