"""Archives: arrays, bytes and one JSON document in a single file, which is written whole or not at all.

An archive is a zip file, so that other tools can look into it; each member has a checksum, which is verified when it is read.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.model.errors import SavedError

Members: TypeAlias = Mapping[str, NDArray[Any] | bytes]
"""Arrays and bytes by name."""

_HEAD: Final = "about.json"
_LEVEL: Final = 1  # of compression: higher ones take several times as long for a tenth less


def write_archive(path: Path, about: Mapping[str, Any], members: Members) -> int:
    """Write an archive in place of the file that is there, once all is on the disk; return its bytes."""
    target = Path(os.path.realpath(path))  # a link stays one
    beside = target.with_name(f".{target.name}.{token_hex(4)}.part")
    try:
        with beside.open("xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
                archive.writestr(_HEAD, json.dumps(about))
                for name, content in members.items():
                    _write_member(archive, name, content)
            file.flush()
            os.fsync(file.fileno())
        size = beside.stat().st_size
        beside.replace(target)
        _sync_folder(target.parent)
    except OSError as fault:
        raise SavedError(f"it cannot be written: {fault.strerror or fault}", str(path)) from fault
    finally:
        beside.unlink(missing_ok=True)
    return size


def _write_member(archive: zipfile.ZipFile, name: str, content: NDArray[Any] | bytes) -> None:
    with archive.open(name, "w", force_zip64=True) as member:
        if isinstance(content, np.ndarray):
            # One block: `write_array` writes to what is no real file in small pieces.
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(content), allow_pickle=False)
            member.write(buffer.getbuffer())
        else:
            member.write(content)


def _sync_folder(path: Path) -> None:
    """Make sure that the names in a folder survive a power cut, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


class ArchiveReader:
    """An open archive; `about` is its document. A damaged one raises `SavedError` when it is opened or read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except FileNotFoundError:
            raise SavedError("there is no such file", str(path)) from None
        except (zipfile.BadZipFile, ValueError, EOFError):
            raise SavedError("it is no file of Tocsin's, or is cut short", str(path)) from None
        except OSError as fault:
            raise SavedError(f"it cannot be read: {fault.strerror or fault}", str(path)) from fault
        if _HEAD not in self._archive.namelist():
            self._archive.close()
            raise SavedError(f"it is a zip file that Tocsin did not write: it has no `{_HEAD}`", str(path))
        try:
            self.about: dict[str, Any] = dict(json.loads(self.bytes(_HEAD)))
        except (ValueError, TypeError):
            raise self.damaged(f"`{_HEAD}` is no JSON object") from None

    def bytes(self, name: str) -> bytes:
        """Return a member."""
        try:
            return self._archive.read(name)
        except Exception as fault:  # a reader of damaged bytes may raise anything
            raise self.damaged(f"`{name}` cannot be read ({fault})") from fault

    def array(self, name: str) -> NDArray[Any]:
        """Return a member that is an array."""
        content = self.bytes(name)
        try:
            return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
        except Exception as fault:
            raise self.damaged(f"`{name}` is no array ({fault})") from fault

    def damaged(self, reason: str) -> SavedError:
        """Return the error for an archive that cannot be read."""
        return SavedError(f"it is damaged: {reason}", str(self._path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()
