"""The commands in README and the guides run as they stand, after `tocsin sample .` in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tocsin.cli.sample_data import sample_files

ROOT = Path(__file__).parents[2]
GUIDES = [
    "README.md", "docs/tutorial.md", "docs/sequences.md", "docs/views.md", "docs/install.md", "docs/recipes.md", "docs/faq.md", "docs/optimiser.md",
    "docs/comparison.md",
]  # fmt: skip
_BLOCK = re.compile(r"^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\$ )?((?:echo [^\n]*\| )?tocsin .*)", re.MULTILINE)
_SHELL = 'tocsin() { "$PYTHON" -m tocsin "$@"; }\n'


def commands(page: str) -> list[str]:
    """Return the command lines of a page, with those that go on joined, and without comments."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "\n".join(_BLOCK.findall(text)).replace("\\\n", " ")
    return [re.sub(r"\s+# .*$", "", line) for line in _COMMAND.findall(blocks)]


# Several pages have the same command; it runs once.
FIRST_PAGES = {" ".join(line.split()): page for page in reversed(GUIDES) for line in commands(page)}
COMMANDS = [pytest.param(line, id=f"{Path(page).name}: {line[:60]}") for line, page in FIRST_PAGES.items()]


@pytest.mark.skipif(os.name != "posix", reason="the commands are written for a POSIX shell")
@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_guides_runs(line: str, tmp_path: Path) -> None:
    for name, text in sample_files().items():
        (tmp_path / name).write_text(text)
    done = run(line, tmp_path)
    # 1 means no, and is an answer only where the example asks why not.
    assert done.returncode == 0 or (done.returncode == 1 and "does not match" in done.stdout), done.stderr
    assert done.stdout or done.stderr or (tmp_path / "notifications.parquet").stat().st_size > 1_000
    assert not re.search("refused|left out|cannot|error", done.stderr), done.stderr


def test_every_guide_has_commands() -> None:
    counts = {page: len(commands(page)) for page in GUIDES}
    assert min(counts.values()) > 0
    assert counts["README.md"] >= 9
    assert not any("\\" in line for page in GUIDES for line in commands(page))


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable, "COLUMNS": "120", "NO_COLOR": "1"}
    return subprocess.run(
        ["/bin/sh", "-c", _SHELL + line], cwd=folder, env=environment, input="", capture_output=True, text=True,
        encoding="utf-8", check=False,
    )  # fmt: skip
