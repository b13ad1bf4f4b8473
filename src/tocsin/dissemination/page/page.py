"""The page as one file, which needs nothing beside it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from tocsin.dissemination.page.scene import Scene

_PARTS: Final = files("tocsin.dissemination.page").joinpath("parts")
_SCRIPTS: Final = ("scene.js", "arrows.js", "zones.js", "rows.js", "overlay.js", "bill.js", "controls.js")


def write_page(scene: Scene, path: Path) -> None:
    """Write a page that shows a scene."""
    path.write_text(page_text(scene), encoding="utf-8")


def page_text(scene: Scene) -> str:
    """Return the page's text: the template with its style, its scripts and the scene within."""
    # In a script `</` would end it, and JSON may write it otherwise.
    data = msgspec.json.encode(scene).decode().replace("<", "\\u003c")
    inserted = {
        "/*style*/": _part("page.css"),
        "/*scene*/": data,
        "/*script*/": "\n".join(_part(name) for name in _SCRIPTS),
    }
    text = _part("page.html")
    for place, part in inserted.items():
        text = text.replace(place, part, 1)
    return text


def _part(name: str) -> str:
    return _PARTS.joinpath(name).read_text(encoding="utf-8")
