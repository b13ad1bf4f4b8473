"""A folder of Arrow files, of which only those that a batch has committed are seen.

    sink.json                        whose folder it is, and the columns of all its rows
    commits/00000000000000000012.json   what batch 12 consists of
    parts/….arrow                    Arrow IPC files; one that no commit names is nobody's

A commit appears at once and whole, and at most once for each batch. What was written for a batch that never
committed stays unseen, until `vacuum` removes it.
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
    """What one batch consists of: its files, by name, and the rows in them.

    A commit that `replaces` takes the place of all before it.
    """

    batch: int
    files: tuple[str, ...]
    rows: int
    replaces: bool = False


class _Heading(Struct, frozen=True, kw_only=True):
    """Whose folder it is: a streaming query's, by the id that its checkpoint keeps, or None for batch jobs."""

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
    schema = sink.heading().schema
    for commit in sink.commits():
        yield commit.batch, pa.concat_tables([schema.empty_table(), *(sink.part(f) for f in commit.files)])


def read_committed(folder: str | Path) -> pa.Table:
    """Return the rows of all committed batches, in the order of the batches."""
    schema = SinkFolder(folder).heading().schema
    return pa.concat_tables([schema.empty_table(), *(table for _, table in committed_batches(folder))])


def vacuum(folder: str | Path, older_than: timedelta = _DAY) -> list[str]:
    """Remove what no reader can see and no running batch may still commit; return the names of the files.

    That is what was last written to longer ago than `older_than`, which must exceed the longest time that a batch
    may take.
    """
    sink = SinkFolder(folder)
    sink.heading()  # refuses a folder that is no sink
    until = time.time() - older_than.total_seconds()
    every = list(sink.all_commits())
    seen = sink.commits()
    # What a commit has replaced may still be being read, for as long as that commit is young.
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

    def heading(self) -> _Heading:
        """Return whose folder it is; raise `SparkError` if it is no sink's."""
        found = self._heading()
        if found is None:
            raise SparkError(
                f"{self.root}: nothing has been committed here, or it is no folder of `tocsin-arrow`"
            )
        return found

    def claim(self, query: str | None, columns: Any, schema: pa.Schema) -> None:
        """Make this the folder of `query`; raise `SparkError` if it is somebody else's, or of other columns.

        Batches are told apart by their numbers, and every query counts from 0: a second query's first batches
        would be taken for the first one's, and lost.
        """
        arrow = base64.b64encode(schema.serialize()).decode("ascii")
        self.root.mkdir(parents=True, exist_ok=True)
        mine = _Heading(query=query, columns=columns, arrow=arrow)
        if self._heading() is None:
            _create(self.root / "sink.json", msgspec.json.format(msgspec.json.encode(mine), indent=1))
        self.check(query, columns)

    def check(self, query: str | None, columns: Any) -> None:
        """Raise `SparkError` if this is already the folder of another query, or of other columns."""
        found = self._heading()
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
        """Yield all commits by number, also those that a later one has replaced."""
        for path in sorted(self.commits_folder.glob("*.json")):
            with suppress(FileNotFoundError):  # vacuumed meanwhile
                yield _decoded(path, Commit)

    def commits(self) -> list[Commit]:
        """Return the commits that count, by number."""
        found = list(self.all_commits())
        first = max((i for i, commit in enumerate(found) if commit.replaces), default=0)
        return found[first:]

    def publish(self, commit: Commit) -> bool:
        """Commit a batch, once and for all; False if it had been before, and nothing was changed."""
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
        """Remove parts that nobody will commit; a part that is gone already is no error."""
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

    def _heading(self) -> _Heading | None:
        path = self.root / "sink.json"
        try:
            found = _decoded(path, _Heading)
        except FileNotFoundError:
            return None
        if found.format != FORMAT:
            raise SparkError(
                f"{path}: written by a newer Tocsin (format {found.format}, this one reads {FORMAT})"
            )
        return found


class PartFile:
    """One task's file: made at its first row, given its name at the end of the `with`, gone if that fails."""

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
        """Add rows; they are brought to the folder's types where theirs differ by time zone or nullability."""
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
    """Write a file that appears at once and whole; False if it is there already, and then left as it is."""
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
    """Make sure that a name which has appeared in a folder survives a crash, where the system can do that."""
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
