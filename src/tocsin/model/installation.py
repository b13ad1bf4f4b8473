"""Where Tocsin was installed from, for hints that name a command that works."""

from __future__ import annotations

import shlex
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import msgspec


def install_hint(*extras: str) -> str:
    """Return the command that installs extras, in backticks; Tocsin is not on a package index, but in a clone.

    >>> print(install_hint("spark", "nats"))
    `pip install '...[spark,nats]'`...
    """
    wanted, clone = ",".join(extras), _clone()
    if clone is None:
        return f"`pip install '.[{wanted}]'` in a clone of Tocsin's repository"
    return f"`pip install {shlex.quote(f'{clone}[{wanted}]')}`"


def _clone() -> Path | None:
    """Return the folder that Tocsin was installed from, if it is still there."""
    package = Path(__file__).parents[1]
    folders = [package.parents[1], *_installed_from()]  # the first if it is used where it is
    return next((folder for folder in folders if (folder / "pyproject.toml").is_file()), None)


def _installed_from() -> list[Path]:
    """Return the folder that pip noted, if it noted one."""
    try:
        noted = distribution("tocsin").read_text("direct_url.json")
    except PackageNotFoundError:
        return []
    address = urlparse(str(msgspec.json.decode(noted).get("url", ""))) if noted else None
    if address is None or address.scheme != "file":
        return []
    return [Path(url2pathname(address.path))]
