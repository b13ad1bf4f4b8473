"""Where an index is kept: a folder on this machine or one that it mounts, or an object store that Arrow can reach."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs

from tocsin.model.errors import SavedIndexError

_SCHEMES: Final = {
    "s3a": "s3",
    "s3n": "s3",
    "wasbs": "abfss",
    "gcs": "gs",
}  # Spark's names for what Arrow knows
_CACHE: Final = "TOCSIN_INDEX_CACHE"
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_DAY: Final = 86_400.0


def storage_of(place: str | os.PathLike[str]) -> Storage:
    """Return the storage at a path, or at a URI such as `s3a://bucket/index`."""
    system, path = file_system_of(place)
    return LocalStorage(Path(path)) if system is None else RemoteStorage(os.fspath(place), system, path)


def file_system_of(place: str | os.PathLike[str]) -> tuple[Any, str]:
    """Return the file system of a path or a URI, as Arrow has it, and the path there; None instead of that of this machine."""
    text = os.fspath(place)
    scheme, rest = urlsplit(text)[0], text.partition(":")[2]
    if len(scheme) < 2:  # none, or a drive's letter
        return None, text
    if scheme == "file":
        return None, unquote(urlsplit(text).path)
    try:
        system, path = pa.fs.FileSystem.from_uri(f"{_SCHEMES.get(scheme, scheme)}:{rest}")
    except (ValueError, OSError, pa.ArrowException) as fault:
        raise SavedIndexError(
            f"this cannot be reached: {fault}; give a folder that every node mounts, or a URI that Arrow knows "
            "(s3, gs, abfss, hdfs)",
            text,
        ) from None
    return system, path


class LocalStorage:
    """A folder that every process sees, on a disk of this machine or mounted."""

    def __init__(self, home: Path) -> None:
        self.home = home.absolute()

    @property
    def uri(self) -> str:
        """Return where this is."""
        return str(self.home)

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None if there is none."""
        try:
            return (self.home / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def create(self, path: str, content: bytes) -> bool:
        """Write a file that is not there yet, whole or not at all; return False if it is there."""
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{token_hex(4)}")
        try:
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(draft, target)  # one step, and refused if the name is taken
            except OSError as fault:
                if fault.errno not in _NO_LINKS:
                    raise
                with target.open("xb") as file:  # the next best where there are no links
                    file.write(content)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        return True

    def replace(self, path: str, content: bytes) -> None:
        """Write a file in place of the one that is there, in one step."""
        target = self.home / path
        draft = target.with_name(f".{target.name}.{token_hex(4)}")
        try:
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in order."""
        try:
            found = (one.name for one in (self.home / folder).iterdir())
            return sorted(name for name in found if not name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def take_in(self, folder: Path, path: str) -> None:
        """Move a folder of this machine, whole, to `path`."""
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.rename(target)
        except OSError:  # another disk
            draft = target.with_name(f".{target.name}")
            shutil.copytree(folder, draft)
            draft.rename(target)
            shutil.rmtree(folder)

    def folder(self, path: str) -> Path:
        """Return a folder, which is here already."""
        return self.home / path

    def leftovers(self) -> list[str]:
        """Return what writers that were killed have left half-written."""
        found = (*self.home.glob(".*"), *self.home.glob("*/.*"))
        return [str(one.relative_to(self.home)) for one in found]

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        target = self.home / path
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)

    def age(self, path: str, now: float) -> float:
        """Return how many seconds ago a file or folder was made."""
        try:
            return now - (self.home / path).stat().st_mtime
        except OSError:
            return 0.0


class RemoteStorage:
    """An object store. It cannot refuse a name that is taken, so only one process at a time may create there."""

    def __init__(self, uri: str, system: Any, home: str) -> None:
        self._uri = uri
        self._system = system
        self._home = home.rstrip("/")

    @property
    def uri(self) -> str:
        """Return where this is."""
        return self._uri

    def read(self, path: str) -> bytes | None:
        """Return a file's content, or None if there is none."""
        try:
            with self._system.open_input_stream(f"{self._home}/{path}") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def create(self, path: str, content: bytes) -> bool:
        """Write a file that is not there yet; return False if it is there."""
        target = f"{self._home}/{path}"
        if self._system.get_file_info(target).type != pa.fs.FileType.NotFound:
            return False
        self._system.create_dir(target.rpartition("/")[0], recursive=True)
        with self._system.open_output_stream(target) as file:
            file.write(content)
        return True

    def replace(self, path: str, content: bytes) -> None:
        """Write a file in place of the one that is there."""
        with self._system.open_output_stream(f"{self._home}/{path}") as file:
            file.write(content)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, in order."""
        selector = pa.fs.FileSelector(f"{self._home}/{folder}", allow_not_found=True)
        return sorted(found.base_name for found in self._system.get_file_info(selector))

    def take_in(self, folder: Path, path: str) -> None:
        """Move a folder of this machine to `path`."""
        target = f"{self._home}/{path}"
        self._system.create_dir(target, recursive=True)
        pa.fs.copy_files(str(folder), target, pa.fs.LocalFileSystem(), self._system)
        shutil.rmtree(folder)

    def folder(self, path: str) -> Path:
        """Return a folder as one of this machine, fetched once for all processes here."""
        cache = Path(os.environ.get(_CACHE) or Path(tempfile.gettempdir()) / f"tocsin-index-{_user()}")
        target = cache / hashlib.sha256(self._uri.encode()).hexdigest()[:16] / path
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _locked(target.with_name(f".{target.name}.lock")):
                if not target.exists():  # another process may have fetched it while this one waited
                    self._fetch(path, target)
        os.utime(target)  # it is in use
        return target

    def _fetch(self, path: str, target: Path) -> None:
        """Fetch a folder to the cache, and remove cached folders that were not used for a day."""
        draft = Path(tempfile.mkdtemp(dir=target.parent, prefix="."))
        try:
            pa.fs.copy_files(f"{self._home}/{path}", str(draft), self._system, pa.fs.LocalFileSystem())
            draft.rename(target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        for other in target.parent.iterdir():
            if other.is_dir() and time.time() - other.stat().st_mtime > _DAY:
                shutil.rmtree(other, ignore_errors=True)

    def leftovers(self) -> list[str]:
        """Return nothing: an object store never shows incomplete files."""
        return []

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        target = f"{self._home}/{path}"
        kind = self._system.get_file_info(target).type
        if kind == pa.fs.FileType.Directory:
            self._system.delete_dir(target)
        elif kind == pa.fs.FileType.File:
            self._system.delete_file(target)

    def age(self, path: str, now: float) -> float:
        """Return how many seconds ago a file was made; 0 if the store does not say."""
        made = self._system.get_file_info(f"{self._home}/{path}").mtime_ns
        return 0.0 if made is None else now - made / 1e9


Storage: TypeAlias = LocalStorage | RemoteStorage
"""Files by their path within the index, with `/` between folders."""


@contextlib.contextmanager
def _locked(path: Path) -> Any:
    """Let one process of this machine at a time go on."""
    try:
        import fcntl  # noqa: PLC0415 - not everywhere
    except ImportError:
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
