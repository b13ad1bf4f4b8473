"""Files that commands write to: `-` is standard output, which then has nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
import typer
from rich.console import Console

from tocsin.cli.console import new_console
from tocsin.formats.files import is_standard
from tocsin.model.errors import TocsinError


def takes_standard_output(*files: Path | None) -> bool:
    """Tell whether one of these files is standard output."""
    return any(file is not None and is_standard(file) for file in files)


def results(*files: Path | None) -> Console:
    """Return the console for a command's results; it is silent if one of its files is standard output."""
    return new_console(quiet=takes_standard_output(*files))


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, or standard output, to write to it."""
    if is_standard(path):
        yield standard_output()
        standard_output().flush()
        return
    with path.open("wb") as file:
        yield file


def standard_output() -> IO[bytes]:
    """Return standard output; raise `TocsinError` if it is closed."""
    if sys.stdout is None:
        raise TocsinError("standard output is closed; name a file")
    return sys.stdout.buffer


def write_json(path: Path, record: Any) -> None:
    """Write one JSON document, indented."""
    encoded = msgspec.json.encode(record, enc_hook=str)  # of paths and dates
    with opened(path) as file:
        file.write(msgspec.json.format(encoded, indent=2) + b"\n")


def no_standard_output(path: Path | None) -> Path | None:
    """Return `path`, or raise `BadParameter` if it is `-`: for files that are not text, or that are read again."""
    if path is not None and is_standard(path):
        raise typer.BadParameter("it cannot be written to standard output; name a file")
    return path


def check_distinct(**files: Path | None) -> None:
    """Raise `TocsinError` if two options name the same file."""
    given: dict[Path, str] = {}
    for option, path in files.items():
        if path is None:
            continue
        other = given.setdefault(path if is_standard(path) else path.resolve(), option)
        if other != option:
            raise TocsinError(f"--{other} and --{option} are both {path}; name two files")
