"""A folder of Arrow files, in which readers see only committed files.

    sink.json                        the owner of the folder, and the columns of all its rows
    commits/00000000000000000012.json   the files of batch 12
    parts/….arrow                    Arrow IPC files; those that no commit names are ignored

A commit appears atomically, and at most once for each batch. Files of a batch that never committed stay invisible
until `vacuum` removes them.
"""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec
import pyarrow as pa
from msgspec import Struct

from tocsin.model.errors import SparkError

FORMAT: Final = 1  # raised whenever an older Tocsin could misread what this one writes
_DAY: Final = timedelta(days=1)
_Kind = TypeVar("_Kind", bound=Struct)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # one letter would be a Windows drive


class Commit(Struct, frozen=True, kw_only=True):
    """The files of one batch, by name, and their number of rows.

    A commit that `replaces` supersedes all earlier ones.
    """

    batch: int
    files: tuple[str, ...]
    rows: int
    replaces: bool = False


class _SinkHeader(Struct, frozen=True, kw_only=True):
    """The owner of a folder: a streaming query, by the id in its checkpoint, or None for batch jobs."""

    format: int = FORMAT
    query: str | None
    columns: Any  # as Spark writes a schema
    arrow: str  # the same as Arrow writes it, in base64

    @property
    def schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.arrow)))


def committed_batches(folder: str | Path) -> Iterator[tuple[int, pa.Table]]:
    """Yield each committed batch's number and its rows, in the order of the numbers."""
    sink = SinkFolder(folder)
    schema = sink.header().schema
    for commit in sink.commits():
        yield commit.batch, pa.concat_tables([schema.empty_table(), *(sink.part(f) for f in commit.files)])


def read_committed(folder: str | Path) -> pa.Table:
    """Return the rows of all committed batches, in the order of the batches."""
    schema = SinkFolder(folder).header().schema
    return pa.concat_tables([schema.empty_table(), *(table for _, table in committed_batches(folder))])


def vacuum(folder: str | Path, older_than: timedelta = _DAY) -> list[str]:
    """Remove files that no reader can see and no running batch may still commit; return their names.

    These were last written longer ago than `older_than`, which must exceed the longest time of a batch.
    """
    sink = SinkFolder(folder)
    sink.header()  # refuses a folder that is no sink
    until = time.time() - older_than.total_seconds()
    every = list(sink.all_commits())
    seen = sink.commits()
    # Files superseded by a young commit may still be read.
    first = seen[0].batch if seen and _last_written(sink.commit_path(seen[0].batch)) < until else -1
    removed = []
    for commit in every:
        if commit.batch < first:
            sink.commit_path(commit.batch).unlink(missing_ok=True)
            removed.append(sink.commit_path(commit.batch).name)
    wanted = {name for commit in every if commit.batch >= first for name in commit.files}
    for path in sorted((*sink.parts.glob("*"), *sink.commits_folder.glob("*.new"))):
        if path.name not in wanted and _last_written(path) < until:
            path.unlink(missing_ok=True)
            removed.append(path.name)
    return removed


class SinkFolder:
    """A folder that batches of rows are committed to."""

    def __init__(self, folder: str | Path) -> None:
        self.root = _local(folder)
        self.parts = self.root / "parts"
        self.commits_folder = self.root / "commits"

    def header(self) -> _SinkHeader:
        """Return the header of the folder; raise `SparkError` if it is no sink."""
        found = self._header()
        if found is None:
            reason = "nothing has been committed here, or it is no folder of `tocsin-arrow`"
            raise SparkError(f"{self.root}: {reason}")
        return found

    def claim(self, query: str | None, columns: Any, schema: pa.Schema) -> None:
        """Make `query` the owner of this folder; raise `SparkError` if it has another owner or other columns.

        Batches are identified by number, and every query counts from 0: the first batches of a second query would be
        taken for those of the first, and lost.
        """
        arrow = base64.b64encode(schema.serialize()).decode("ascii")
        self.root.mkdir(parents=True, exist_ok=True)
        mine = _SinkHeader(query=query, columns=columns, arrow=arrow)
        if self._header() is None:
            _create(self.root / "sink.json", msgspec.json.format(msgspec.json.encode(mine), indent=1))
        self.check(query, columns)

    def check(self, query: str | None, columns: Any) -> None:
        """Raise `SparkError` if this is already the folder of another query, or of other columns."""
        found = self._header()
        if found is None:
            return
        if found.query != query:
            raise SparkError(
                f"{self.root} holds what {_who(found.query)} wrote, and {_who(query)} cannot add to it: "
                "its batches would be taken for batches that are already there. "
                "Write to a new folder, or start from the checkpoint that this folder was written with"
            )
        if found.columns != columns:
            raise SparkError(
                f"{self.root} holds the columns {_described(found.columns)}, not {_described(columns)}: "
                "write to a new folder"
            )

    def commit_path(self, batch: int) -> Path:
        """Return the file that commits a batch; names sort as the numbers do."""
        return self.commits_folder / f"{batch:020}.json"

    def commit_of(self, batch: int) -> Commit | None:
        """Return a batch's commit, None if it has not committed."""
        with suppress(FileNotFoundError):
            return _decoded(self.commit_path(batch), Commit)
        return None

    def all_commits(self) -> Iterator[Commit]:
        """Yield all commits by number, including superseded ones."""
        for path in sorted(self.commits_folder.glob("*.json")):
            with suppress(FileNotFoundError):  # vacuumed meanwhile
                yield _decoded(path, Commit)

    def commits(self) -> list[Commit]:
        """Return the commits that are not superseded, by number."""
        found = list(self.all_commits())
        first = max((i for i, commit in enumerate(found) if commit.replaces), default=0)
        return found[first:]

    def publish(self, commit: Commit) -> bool:
        """Commit a batch; return False, and change nothing, if it was committed before."""
        self.commits_folder.mkdir(parents=True, exist_ok=True)
        return _create(self.commit_path(commit.batch), msgspec.json.encode(commit))

    def append(self, files: tuple[str, ...], rows: int, *, replaces: bool) -> Commit:
        """Commit files as a batch of the next free number."""
        batch = max((commit.batch for commit in self.all_commits()), default=-1)
        while True:
            batch += 1
            commit = Commit(batch=batch, files=files, rows=rows, replaces=replaces)
            if self.publish(commit):
                return commit

    def discard(self, files: Iterable[str]) -> None:
        """Remove parts that will not be committed; a missing part is no error."""
        for name in files:
            (self.parts / name).unlink(missing_ok=True)

    def part(self, name: str) -> pa.Table:
        """Return a committed part's rows, mapped into memory."""
        path = self.parts / name
        try:
            with pa.memory_map(str(path)) as file:
                return pa.ipc.open_file(file).read_all()
        except (OSError, pa.ArrowInvalid) as fault:
            raise SparkError(f"{path}: a committed file is gone or damaged ({fault})") from fault

    def size(self, name: str) -> int:
        """Return the bytes of a part, 0 if it is gone: reading it will say so."""
        try:
            return (self.parts / name).stat().st_size
        except FileNotFoundError:
            return 0

    def _header(self) -> _SinkHeader | None:
        """Return the header of the folder, None without one; raise `SparkError` for a newer format."""
        path = self.root / "sink.json"
        try:
            found = _decoded(path, _SinkHeader)
        except FileNotFoundError:
            return None
        if found.format != FORMAT:
            made = f"format {found.format}, this one reads {FORMAT}"
            raise SparkError(f"{path}: written by a newer Tocsin ({made})")
        return found


class PartFile:
    """One task's file: created at its first row, renamed at the end of the `with`, removed if that fails."""

    def __init__(self, sink: SinkFolder, schema: pa.Schema, compression: str | None = None) -> None:
        self.files: tuple[str, ...] = ()
        self.rows = 0
        self._sink = sink
        self._schema = schema
        self._options = pa.ipc.IpcWriteOptions(compression=compression)
        self._path = sink.parts / f"{token_hex(16)}.arrow"
        self._new = self._path.with_suffix(".new")
        self._file: Any = None
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; types that differ in time zone or nullability are cast to the folder's."""
        if not batch.num_rows:
            return
        if self._writer is None:
            self._sink.parts.mkdir(parents=True, exist_ok=True)
            self._file = self._new.open("xb")
            self._writer = pa.ipc.new_file(self._file, self._schema, options=self._options)
        self._writer.write_batch(batch if batch.schema.equals(self._schema) else batch.cast(self._schema))
        self.rows += batch.num_rows

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None:
            return
        try:
            with self._file:
                self._writer.close()
                self._file.flush()
                os.fsync(self._file.fileno())
            if kind is None:
                self._new.replace(self._path)
                _sync_folder(self._path.parent)
                self.files = (self._path.name,)
        finally:
            self._new.unlink(missing_ok=True)


def _local(folder: str | Path) -> Path:
    """Return a folder's absolute path; raise `SparkError` if it is not one that this machine has mounted."""
    text = str(folder)
    if not text:
        raise SparkError(
            "tocsin-arrow: no folder is given; name one in `load`, `save` or `start`, or as option `path`"
        )
    if _SCHEME.match(text):
        parts = urlsplit(text)
        if parts.scheme.lower() != "file" or parts.netloc not in {"", "localhost"}:
            raise SparkError(
                f"tocsin-arrow writes to folders that every machine has mounted, not to `{parts.scheme}:`: "
                f"mount {text}, or write it with one of Spark's own sinks"
            )
        text = unquote(parts.path)
    return Path(text).absolute()


def _create(path: Path, content: bytes) -> bool:
    """Create a file atomically; return False, and leave it, if it exists already."""
    new = path.with_name(f"{path.name}.{token_hex(8)}.new")
    try:
        with new.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(new, path)  # unlike a rename, it fails if the name is taken
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            if path.exists():
                return False
            new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    _sync_folder(path.parent)
    return True


def _sync_folder(folder: Path) -> None:
    """Sync a folder, where the system can, so that new names in it survive a crash."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _decoded(path: Path, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except msgspec.MsgspecError as fault:
        raise SparkError(f"{path}: not written by this sink ({fault})") from fault


def _last_written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _who(query: str | None) -> str:
    return "a batch job" if query is None else f"streaming query {query}"


def _described(columns: Any) -> str:
    kinds = ((column["name"], column["type"]) for column in columns["fields"])
    return ", ".join(f"{name} {kind if isinstance(kind, str) else kind['type']}" for name, kind in kinds)
