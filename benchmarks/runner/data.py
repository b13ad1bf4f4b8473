"""Files that a benchmark's data is read from; data without a file is made up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from tocsin.model.errors import TocsinError

DataFiles: TypeAlias = Mapping[str, Path | None]


def find_data(
    usual: Mapping[str, str], folder: Path | None, advice: str, **given: Path | None
) -> dict[str, Path | None]:
    """Return the file of each kind of data: the given one, else the one that a folder has under its usual name.

    Raise `TocsinError` for files that do not exist, with advice.
    """
    files = {
        name: given.get(name) or (folder / file if folder is not None and file else None)
        for name, file in usual.items()
    }
    missing = [str(path) for path in files.values() if path is not None and not path.exists()]
    if missing:
        raise TocsinError(f"there is no {' and no '.join(missing)}; {advice}")
    return files


def origins(files: DataFiles) -> dict[str, str]:
    """Return where each kind of data comes from, as the report names it."""
    return {name: "made up" if path is None else path.name for name, path in files.items()}
