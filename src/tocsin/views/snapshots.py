"""Tables in a file, as they stand, and back."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np

from tocsin.model.errors import SavedError
from tocsin.views.table import Table

_FORMAT: Final = "tocsin-tables-1"


def save_tables(tables: Iterable[Table], path: Path) -> None:
    """Write tables to a file; what stood there is replaced once all has been written."""
    about: dict[str, Any] = {}
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
            for place, table in enumerate(tables):
                arrays, about[table.name] = table.parts()
                for name, array in arrays.items():
                    with file.open(f"{place}/{name}.npy", "w", force_zip64=True) as part:
                        np.lib.format.write_array(part, array, allow_pickle=False)
            file.writestr("tables.json", json.dumps({"format": _FORMAT, "tables": about}))
        beside.replace(path)
    except OSError as fault:
        raise SavedError(f"the tables cannot be saved: {fault.strerror or fault}", str(path)) from fault
    finally:
        beside.unlink(missing_ok=True)


def load_tables(path: Path) -> list[Table]:
    """Return the tables that a file holds, or raise `SavedError` if it holds none or is damaged."""
    try:
        with zipfile.ZipFile(path) as file:
            about = json.loads(file.read("tables.json"))
            if about.get("format") != _FORMAT:
                raise SavedError(
                    f"it is of the format {about.get('format')!r}, this version reads {_FORMAT!r}", str(path)
                )
            return [
                Table.of_parts(name, _arrays(file, f"{place}/"), rest)
                for place, (name, rest) in enumerate(about["tables"].items())
            ]
    except FileNotFoundError:
        raise SavedError("there is no such file", str(path)) from None
    except SavedError:
        raise
    except Exception as fault:  # what a damaged file makes of its readers is without end
        raise SavedError(f"it holds no tables, or is damaged: {fault}", str(path)) from fault


def _arrays(file: zipfile.ZipFile, folder: str) -> dict[str, Any]:
    return {
        name.removeprefix(folder).removesuffix(".npy"): np.lib.format.read_array(
            io.BytesIO(file.read(name)), allow_pickle=False
        )
        for name in file.namelist()
        if name.startswith(folder)
    }
