"""`tocsin compile`, ahead of time and as an archive."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import tocsin

USE = """
from tocsin import Engine
from tocsin.structures.compile_log import compiled
engine = Engine(matcher="dynamic")
engine.subscribe("a > 1")
assert len(engine.publish({"a": 2})) == 1
print(len(compiled()))
"""


def test_an_unknown_matcher_is_named() -> None:
    done = tocsin("compile", "--matcher", "dynamo")
    assert done.returncode == 2
    assert "there is no matcher `dynamo`; known: adaptive, amkh, " in done.stderr


def test_a_target_needs_an_archive() -> None:
    done = tocsin("compile", "--target", "native")
    assert done.returncode == 2
    assert "give --output too" in done.stderr


@pytest.mark.long
def test_an_archive_spares_another_machine_the_compiling(tmp_path: Path) -> None:
    archive = tmp_path / "kernels.tar"
    done = tocsin("compile", "--output", archive)
    assert done.returncode == 0, done.stderr
    assert f"{archive} is for " in done.stdout
    environment = {**os.environ, "TOCSIN_CACHE_DIR": str(tmp_path / "empty"), "TOCSIN_KERNELS": str(archive)}
    used = subprocess.run(
        [sys.executable, "-c", USE], env=environment, capture_output=True, text=True, check=True
    )
    assert used.stdout == "0\n"
    assert "another" not in used.stderr


@pytest.mark.long
def test_a_processor_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    done = tocsin("compile", "--output", tmp_path / "kernels.tar", "--target", "abacus")
    assert done.returncode == 2
    assert "nothing could be compiled for abacus" in done.stderr
