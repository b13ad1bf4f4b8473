"""`tocsin sample`: small files to try the commands with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli.terminal import counted, note
from tocsin.model.errors import TocsinError


def sample(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder for the files; it is made if it does not exist.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there already.")] = False,
) -> None:
    """Write small files to try the commands with: flights, quotes and trades, and subscriptions to them.

    They are made up, and the same each time. Nothing is written if one of them would replace another file.
    """
    from tocsin.cli.sample_data import sample_files  # noqa: PLC0415 - only when asked for

    files = {folder / name: text.encode() for name, text in sample_files().items()}
    taken = [path for path, data in files.items() if path.exists() and not _has(path, data)]
    if taken and not force:
        raise TocsinError(
            f"{taken[0]} is there already, and is another file; name another folder, or give --force"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for path, data in files.items():
        path.write_bytes(data)
        lines = data.count(b"\n")
        typer.echo(f"{path}  {counted(lines, 'line')}")
    note(f"""try: tocsin test "dep_delay > 300" {folder / "flights.csv"}""")


def _has(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data
