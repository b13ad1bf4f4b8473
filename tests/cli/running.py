"""Running command lines as their users do: as a process, with its own standard streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

_CACHES: Final = ("TOCSIN_CACHE_DIR", "XDG_CACHE_HOME")  # where compiled kernels are


def tocsin(*arguments: str | Path, stdin: str | bytes = "") -> subprocess.CompletedProcess[str]:
    """Run `tocsin …`, and return its exit code and output."""
    return run_module("tocsin", *arguments, stdin=stdin)


def run_module(
    module: str, *arguments: str | Path, stdin: str | bytes = ""
) -> subprocess.CompletedProcess[str]:
    """Run `python -m module …`, and return its exit code and output."""
    return subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        input=stdin if isinstance(stdin, str) else stdin.decode(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={
            "COLUMNS": "120",
            "PATH": "",
            "NO_COLOR": "1",
            "PYTHONUTF8": "1",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            **{name: os.environ[name] for name in _CACHES if name in os.environ},
        },
    )
