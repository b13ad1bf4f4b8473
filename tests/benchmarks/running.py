"""Running `python -m benchmarks` in this process, so that a test may replace its scales."""

from __future__ import annotations

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import NamedTuple

from benchmarks.__main__ import main


class Ended(NamedTuple):
    exit_code: int
    output: str


def benchmark(*arguments: object) -> Ended:
    """Run a command line, and return its exit code and output."""
    output = StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = main([str(one) for one in arguments])
    return Ended(code, output.getvalue())
