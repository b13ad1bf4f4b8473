from __future__ import annotations

import subprocess
import sys

import pytest

import tocsin

# What takes a while to load, and is needed only for some calls: the compiler, other libraries' tables, event loops, files.
HEAVY = [
    "asyncio",
    "numba",
    "llvmlite",
    "pandas",
    "polars",
    "pyspark",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyarrow.fs",
]
TERMINAL = ["rich", "typer"]

USE = """
import tocsin
engine = tocsin.Engine()
engine.subscribe("symbol = 'IBM' and price > 100", id="high")
engine.subscribe_many("symbol = :s", {"s": ["A", "B"]}, id="{s}")
assert [note.subscription for note in engine.publish({"symbol": "A", "price": 1})] == ["A"]
"""


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import tocsin", [*HEAVY, *TERMINAL]),
        (USE, [*HEAVY, *TERMINAL]),
        ("import tocsin.cli.app", HEAVY),
    ],
)
def test_what_takes_long_to_load_is_loaded_by_those_who_use_it(code: str, absent: list[str]) -> None:
    loaded = "import sys; print([name for name in " + repr(absent) + " if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{loaded}"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_every_public_name_is_there_and_listed() -> None:
    assert {*tocsin.__all__} <= {*dir(tocsin)}
    for name in tocsin.__all__:
        assert getattr(tocsin, name) is not None
    assert tocsin.errors.TocsinError.__name__ == "TocsinError"
    assert not hasattr(tocsin, "nothing")
