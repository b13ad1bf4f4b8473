"""The declared tables, and the file that they are saved in."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from tocsin.model.errors import SavedError, TocsinError
from tocsin.model.event import check_stream
from tocsin.structures.whole_files import replacing
from tocsin.views.family import Contents
from tocsin.views.table import StoredTable

_FORMAT: Final = "tocsin-tables-1"


class TableCatalog:
    """Tables by name. A table's name is that of the stream whose events are its rows."""

    def __init__(self) -> None:
        self.by_name: dict[str, StoredTable] = {}

    def __len__(self) -> int:
        return len(self.by_name)

    def __iter__(self) -> Iterator[StoredTable]:
        return iter(self.by_name.values())

    def __contains__(self, name: object) -> bool:
        return name in self.by_name

    def __getitem__(self, name: str) -> StoredTable:
        return self.by_name[name]

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """Return the attributes of each table's key."""
        return {name: table.key for name, table in self.by_name.items()}

    def declare(self, name: str, key: str | Sequence[str]) -> None:
        """Declare a stream to be a table with this key."""
        check_stream(name)
        if not name:
            raise TocsinError("a table's name is its stream's: a string that is not empty")
        given: object = key
        names = (key,) if isinstance(key, str) else tuple(key) if isinstance(given, Iterable) else ()
        is_valid = all(type(one) is str and one for one in names) and len({*names}) == len(names)
        if not names or not is_valid:
            raise TocsinError(f"the key of a table is an attribute's name, or several, not {key!r}")
        present = self.by_name.get(name)
        if present is not None and present.key != names:
            raise TocsinError(
                f"the table `{name}` has the key {quoted(present.key)} already, not {quoted(names)}"
            )
        if present is None:
            self.by_name[name] = StoredTable(name, names)

    def save(self, path: Path) -> None:
        """Write all tables to a file."""
        save_tables(self, path)

    def load(self, path: Path) -> tuple[str, ...]:
        """Replace or declare the tables that a file holds, and return their names.

        A table that views read is refused: its answers would change without an event to report.
        """
        tables = load_tables(path)
        for table in tables:
            present = self.by_name.get(table.name)
            if present is not None and present.readers:
                raise TocsinError(
                    f"the table `{table.name}` has views; load tables first, and then subscribe, or into another engine"
                )
            if present is not None and present.key != table.key:
                raise TocsinError(
                    f"{path}: the table `{table.name}` has the key {quoted(table.key)} there, and "
                    f"{quoted(present.key)} here"
                )
        self.by_name |= {table.name: table for table in tables}
        return tuple(table.name for table in tables)

    def contents(self, names: Iterable[str]) -> Contents:
        """Return the present rows of some tables."""
        return {name: self[name].contents() for name in names}


def quoted(names: Sequence[str]) -> str:
    """Return names as errors list them."""
    return ", ".join(f"`{name}`" for name in names)


def save_tables(tables: Iterable[StoredTable], path: Path) -> None:
    """Write tables to a file; an older file is replaced once all has been written."""
    about: dict[str, Any] = {}
    try:
        with (
            replacing(path) as whole,
            zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
        ):
            for position, table in enumerate(tables):
                arrays, about[table.name] = table.parts()
                for name, array in arrays.items():
                    with file.open(f"{position}/{name}.npy", "w", force_zip64=True) as part:
                        np.lib.format.write_array(part, array, allow_pickle=False)
            file.writestr("tables.json", json.dumps({"format": _FORMAT, "tables": about}))
    except OSError as fault:
        raise SavedError(f"the tables cannot be saved: {fault.strerror or fault}", str(path)) from fault


def load_tables(path: Path) -> list[StoredTable]:
    """Return the tables that a file holds, or raise `SavedError` if it holds none or is damaged."""
    try:
        with zipfile.ZipFile(path) as file:
            about = json.loads(file.read("tables.json"))
            if about.get("format") != _FORMAT:
                raise SavedError(
                    f"it is of the format {about.get('format')!r}, this version reads {_FORMAT!r}", str(path)
                )
            return [
                StoredTable.of_parts(name, _arrays(file, f"{position}/"), rest)
                for position, (name, rest) in enumerate(about["tables"].items())
            ]
    except FileNotFoundError:
        raise SavedError("there is no such file", str(path)) from None
    except SavedError:
        raise
    except Exception as fault:  # readers of a damaged file may raise anything
        raise SavedError(f"it holds no tables, or is damaged: {fault}", str(path)) from fault


def _arrays(file: zipfile.ZipFile, folder: str) -> dict[str, Any]:
    """Return the arrays of a folder in the file, by name."""
    return {
        name.removeprefix(folder).removesuffix(".npy"): np.lib.format.read_array(
            io.BytesIO(file.read(name)), allow_pickle=False
        )
        for name in file.namelist()
        if name.startswith(folder)
    }
