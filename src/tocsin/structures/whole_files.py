"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path
from secrets import token_hex


@contextmanager
def replacing(path: Path) -> Iterator[BufferedWriter]:
    """Open a new file that takes the place of `path` once all of it is on the disk; a failure leaves what is there.

    It keeps the permissions of the file that it replaces, and a link stays one.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{token_hex(4)}.part")
    try:
        with beside.open("xb") as file:
            yield file
            sync_file(file)  # the rename must not reach the disk before the contents
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(target.parent)


def sync_file(file: BufferedWriter) -> None:
    """Make sure that what was written to a file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make sure that the names in a folder survive a power cut, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # some network file systems cannot
                os.fsync(number)
        finally:
            os.close(number)
