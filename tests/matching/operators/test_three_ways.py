"""The tests of the operators' kernels over again, without the compiler and with every index checked."""

from __future__ import annotations

import pytest

from tests.structures.test_three_ways import assert_passes


@pytest.mark.parametrize("mode", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_indexes_pass_their_tests_in_the_other_modes(mode: str) -> None:
    folder = "tests/matching/operators"
    assert_passes(mode, f"{folder}/test_indexes.py", f"{folder}/test_contains.py")
