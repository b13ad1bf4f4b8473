"""The structures' tests over again, without the compiler and with every index checked.

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


@pytest.mark.parametrize("mode", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_the_structures_pass_their_tests_in_the_other_modes_too(mode: str) -> None:
    # What pytest tells its own workers is not meant for a pytest within them.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    here = Path(__file__).relative_to(ROOT)
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider"),
            *(str(here.parent), f"--ignore={here}"),
        ],
        cwd=ROOT,
        env={**inherited, mode: "1", "TOCSIN_TEST_PROFILE": "brief"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
