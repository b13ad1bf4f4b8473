"""Archives: arrays, bytes and one JSON document, in a single file or in memory.

A file is a zip file, so that other tools can look into it; it is written whole or not at all, and each member has a checksum,
which is verified when it is read. In memory they are `Parts`, which `pack` puts into one block of bytes.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tocsin.model.errors import SavedError
from tocsin.structures.whole_files import replacing

Members: TypeAlias = Mapping[str, NDArray[Any] | bytes]
"""Arrays and bytes by name."""

_HEAD: Final = "about.json"
_LEVEL: Final = 1  # of compression: higher ones take several times as long for a tenth less


def write_archive(path: Path, about: Mapping[str, Any], members: Members) -> int:
    """Write an archive in place of the file that is there, once all is on the disk; return its bytes."""
    try:
        with replacing(path) as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
                archive.writestr(_HEAD, json.dumps(about))
                for name, content in members.items():
                    _write_member(archive, name, content)
            return file.tell()
    except OSError as fault:
        raise SavedError(f"it cannot be written: {fault.strerror or fault}", str(path)) from fault


def _write_member(archive: zipfile.ZipFile, name: str, content: NDArray[Any] | bytes) -> None:
    with archive.open(name, "w", force_zip64=True) as member:
        if isinstance(content, np.ndarray):
            # One block: `write_array` writes to what is no real file in small pieces.
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(content), allow_pickle=False)
            member.write(buffer.getbuffer())
        else:
            member.write(content)


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


# in memory


class Parts(NamedTuple):
    """State that can be saved: a document as JSON has it, and arrays and bytes by name."""

    about: dict[str, Any]
    members: dict[str, NDArray[Any] | bytes]

    @classmethod
    def join(cls, about: Mapping[str, Any], parts: Mapping[str, Parts]) -> Parts:
        """Return all of these parts as one, from which `part` takes each of them again by its name.

        >>> one = Parts.join({"format": 1}, {"clock": Parts({"now": 7}, {}), "rows": Parts({}, {"ends": np.arange(2)})})
        >>> one.about["format"], one.part("clock").about, one.part("rows").members
        (1, {'now': 7}, {'ends': array([0, 1])})
        """
        members = {
            f"{of}/{name}": member for of, one in parts.items() for name, member in one.members.items()
        }
        return cls({**about, _PARTS: {name: one.about for name, one in parts.items()}}, members)

    def part(self, name: str) -> Parts:
        """Return one of the parts that were joined, or raise `SavedError` if there is none of this name."""
        about = self.about.get(_PARTS)
        if not isinstance(about, dict) or not isinstance(about.get(name), dict):
            raise SavedError(f"it has no part `{name}`")
        prefix = f"{name}/"
        own = {at.removeprefix(prefix): one for at, one in self.members.items() if at.startswith(prefix)}
        return Parts(about[name], own)

    def array(self, name: str) -> NDArray[Any]:
        """Return a member that is an array, or raise `SavedError` if there is none of this name."""
        found = self.members.get(name)
        if not isinstance(found, np.ndarray):
            raise SavedError(f"it has no array `{name}`")
        return found

    def bytes(self, name: str) -> bytes:
        """Return a member that is bytes, or raise `SavedError` if there is none of this name."""
        found = self.members.get(name)
        if not isinstance(found, bytes):
            raise SavedError(f"it has no bytes `{name}`")
        return found


_PARTS: Final = "parts"
_MAGIC: Final = b"TOCSIN\x00\x01"  # the last byte is the version of what follows
# The magic, the checksum of all that follows it, the bytes in all, and those of the document.
_HEADER: Final = struct.Struct("<8sIQQ")
_CHECKED: Final = 12  # where the checked bytes begin
_ALIGNED: Final = 64  # each member begins at a multiple of it


def pack(parts: Parts) -> bytes:
    """Return parts as one block of bytes with a checksum, at the speed of memory.

    >>> unpack(pack(Parts({"a": 1}, {"numbers": np.arange(3), "text": b"x"})))
    Parts(about={'a': 1}, members={'numbers': array([0, 1, 2]), 'text': b'x'})
    """
    described: list[list[Any]] = []
    pieces: list[memoryview | bytes] = []
    at = 0
    for name, member in parts.members.items():
        if isinstance(member, bytes):
            described.append([name, None, None, at, len(member)])
            pieces.append(member)
        else:
            array = np.asarray(member, order="C")
            if array.dtype.hasobject:
                raise TypeError(f"`{name}` is an array of Python objects")
            kind = np.lib.format.dtype_to_descr(array.dtype)
            described.append([name, kind, array.shape, at, array.nbytes])
            pieces.append(memoryview(array.reshape(-1).view(np.uint8)))
        size = described[-1][4]
        padding = -size % _ALIGNED
        pieces.append(bytes(padding))
        at += size + padding
    document = json.dumps({"about": parts.about, "members": described}).encode()
    head = bytes(-(_HEADER.size + len(document)) % _ALIGNED)
    total = _HEADER.size + len(document) + len(head) + at
    pieces[:0] = [document, head]
    checksum = crc32(_HEADER.pack(_MAGIC, 0, total, len(document))[_CHECKED:])
    for piece in pieces:
        checksum = crc32(piece, checksum)
    return b"".join([_HEADER.pack(_MAGIC, checksum, total, len(document)), *pieces])


def unpack(data: bytes | bytearray | memoryview) -> Parts:
    """Return the parts that `pack` made these bytes of; raise `SavedError` if they are damaged, or are none of `pack`.

    The arrays are copies of their own, which may be written to.
    """
    view = memoryview(data).cast("B")
    if view[:6] != _MAGIC[:6]:
        raise SavedError("these bytes are no state that Tocsin saved")
    if len(view) < _HEADER.size:
        raise SavedError("it is cut short")
    magic, checksum, total, length = _HEADER.unpack_from(view)
    if magic != _MAGIC:
        raise SavedError("it was saved by another version of Tocsin, in a form that this one does not read")
    if len(view) != total:
        raise SavedError("it is cut short" if len(view) < total else "it is damaged: bytes follow its end")
    if crc32(view[_CHECKED:]) != checksum:
        raise SavedError("it is damaged: its checksum differs")
    try:
        document = json.loads(bytes(view[_HEADER.size : _HEADER.size + length]))
        begin = _HEADER.size + length + -(_HEADER.size + length) % _ALIGNED
        return Parts(dict(document["about"]), dict(_members_of(view[begin:], document["members"])))
    except Exception as fault:  # its checksum is right, so somebody else wrote it
        raise SavedError(f"these bytes are no state that Tocsin saved ({fault})") from fault


def _members_of(view: memoryview, described: list[list[Any]]) -> Iterator[tuple[str, NDArray[Any] | bytes]]:
    for name, kind, shape, at, size in described:
        piece = view[at : at + size]
        if len(piece) != size:
            raise ValueError(f"`{name}` is cut short")
        if kind is None:
            yield name, bytes(piece)
            continue
        dtype = np.lib.format.descr_to_dtype(kind)
        if dtype.hasobject:
            raise ValueError(f"`{name}` is an array of Python objects")
        yield name, np.frombuffer(piece, dtype=np.uint8).copy().view(dtype).reshape(shape)
