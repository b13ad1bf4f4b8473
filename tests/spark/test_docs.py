"""The Python in the reference runs, block by block, in the tests' session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "spark.md"


def test_the_reference_s_examples_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tocsin.spark.local_session", lambda: spark)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 12
    names: dict[str, object] = {}
    for block in blocks:
        # Spark's own working directory is another.
        placed = re.sub(r'"(incoming|notifications|checkpoint)"', rf'"{tmp_path}/\1"', block)
        exec(placed, names)  # noqa: S102 - it is our own page
