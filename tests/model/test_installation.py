"""Hints to install an extra name a command that works, and the extras are those that there are."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tocsin.model import installation
from tocsin.model.installation import install_hint

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_a_clone_is_named_by_its_folder() -> None:
    assert install_hint("spark") == f"`pip install '{Path(installation.__file__).parents[3]}[spark]'`"


def test_an_installed_package_names_the_clone_that_pip_noted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        installation, "__file__", str(tmp_path / "site-packages/tocsin/model/installation.py")
    )
    clone = tmp_path / "a clone"
    monkeypatch.setattr(installation, "distribution", lambda _: Noted(f'{{"url": "{clone.as_uri()}"}}'))
    gone = "`pip install '.[spark,nats]'` in a clone of Tocsin's repository"
    assert install_hint("spark", "nats") == gone
    clone.mkdir()
    (clone / "pyproject.toml").touch()
    assert install_hint("spark", "nats") == f"`pip install '{clone}[spark,nats]'`"
    monkeypatch.setattr(installation, "distribution", lambda _: Noted(None))
    assert install_hint("spark", "nats") == gone


class Noted:
    def __init__(self, text: str | None) -> None:
        self.text = text

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.text


def test_hints_name_extras_that_exist_and_no_index() -> None:
    named = set()
    for folder in ("src", "benchmarks"):
        for source in (ROOT / folder).rglob("*.py"):
            text = source.read_text(encoding="utf-8")
            named |= set(re.findall(r"install_hint\(['\"](\w+)", text))
            assert "tocsin[" not in text, source
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        assert "tocsin[" not in page.read_text(encoding="utf-8"), page
    assert named == {*EXTRAS}


def test_every_package_of_an_extra_is_imported_by_code() -> None:
    modules = {"nats-py": "nats"}
    sources = "".join(
        source.read_text(encoding="utf-8") for folder in ("src", "benchmarks") for source in (ROOT / folder).rglob("*.py")
    )  # fmt: skip
    for requirement in {one for extra in EXTRAS.values() for one in extra}:
        name = re.split(r"[^A-Za-z0-9_-]", requirement)[0]
        module = modules.get(name, name)
        assert re.search(rf"import {module}\b|from {module}\b|find_spec\(\"{module}\"", sources), requirement


def test_the_lock_has_every_requirement() -> None:
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    wanted += [one for extra in EXTRAS.values() for one in extra]
    assert {re.split(r"[^A-Za-z0-9_-]", one)[0] for one in wanted} <= locked


def test_the_hint_can_be_imported_without_anything_heavy() -> None:
    code = "import sys, tocsin.model.installation; print('pyarrow' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )
