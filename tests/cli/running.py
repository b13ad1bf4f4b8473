"""Running `tocsin` as its users do: as a process, with its own standard streams."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["tocsin"]


def tocsin(*arguments: str | Path, stdin: str | bytes = "") -> subprocess.CompletedProcess[str]:
    """Return how `tocsin …` ended, with what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "tocsin", *map(str, arguments)],
        input=stdin if isinstance(stdin, str) else stdin.decode(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={"COLUMNS": "120", "PATH": "", "NO_COLOR": "1", "PYTHONUTF8": "1"},
    )
