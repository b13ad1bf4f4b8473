"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tocsin.engine import Engine
from tocsin.formats import EventFields, EventFile, EventReader, Format, open_events
from tocsin.model.errors import KindError, TocsinError
from tocsin.model.ticks import StreamTicks

_FIELDS = "Which attribute says what"

EventsArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="[EVENTS]",
        help="A file of events (JSON lines, JSON, CSV, Parquet, Arrow; .gz and .zst too), or - for standard input.",
    ),
]
InputFormat: TypeAlias = Annotated[
    Format | None,
    typer.Option("--input-format", help="How the events are written, if the name does not say."),
]
Stream: TypeAlias = Annotated[str | None, typer.Option(help="The stream that the events are of.")]
TimeField: TypeAlias = Annotated[
    str | None,
    typer.Option("--time-field", help="When the event ended; without it, now.", rich_help_panel=_FIELDS),
]
StartField: TypeAlias = Annotated[
    str | None, typer.Option("--start-field", help="When it started.", rich_help_panel=_FIELDS)
]
IdField: TypeAlias = Annotated[
    str | None, typer.Option("--id-field", help="Its id.", rich_help_panel=_FIELDS)
]
StreamField: TypeAlias = Annotated[
    str | None, typer.Option("--stream-field", help="Its stream.", rich_help_panel=_FIELDS)
]
ValidUntilField: TypeAlias = Annotated[
    str | None, typer.Option("--valid-until-field", help="Until when it is kept.", rich_help_panel=_FIELDS)
]
Disorder: TypeAlias = Annotated[
    int,
    typer.Option(
        min=0,
        help="By how many ticks events may come out of order before sequences miss them.",
        metavar="TICKS",
    ),
]
StreamTick: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--tick",
        help="How long a tick of a stream is, such as 'stock=1 second'; may be given several times.",
        metavar="STREAM=LENGTH",
    ),
]
Tables: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        help="Let a stream be a table with this key, such as stock=symbol; may be given several times.",
        metavar="STREAM=KEY[,KEY]",
    ),
]
Faults: TypeAlias = Annotated[
    Path | None, typer.Option("--faults", help="Write every fault to this file.", dir_okay=False)
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no summary.")]


def events_from(
    source: str,
    format: Format | None = None,
    *,
    stream: str | None = None,
    fields: EventFields | None = None,
    ticks: StreamTicks | None = None,
) -> EventFile:
    """Return the events of a file or of standard input; `ticks` says what the times of each stream count."""
    return open_events(source, EventReader(fields, stream=stream, ticks=ticks), format=format)


def declare_ticks(engine: Engine, given: Iterable[str]) -> None:
    """Declare the ticks of streams that are written as `stock=1 second`."""
    for one in given:
        stream, equals, tick = one.rpartition("=")
        if not equals or not stream:
            raise TocsinError(f"--tick is written as stream=length, such as 'stock=1 second', not {one!r}")
        try:
            engine.stream(stream, tick=tick)
        except KindError as fault:
            raise TocsinError(f"--tick {one}: {fault}") from None


def declare_tables(engine: Engine, given: Iterable[str]) -> None:
    """Declare tables that are written as `stock=symbol`, or with several keys as `quote=exchange,symbol`."""
    for one in given:
        stream, equals, keys = one.rpartition("=")
        names = [key.strip() for key in keys.split(",")]
        if not equals or not stream or not all(names):
            raise TocsinError(f"--table is written as stream=key, such as stock=symbol, not {one!r}")
        engine.table(stream, key=names)


def to_be_written(path: Path | None) -> Path | None:
    """Return a file that a run is to write; raise `BadParameter` now, and not after the run, if it cannot be there."""
    if path is None:
        return None
    if not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}; make it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise typer.BadParameter(f"{path} cannot be written")
    return path


def matcher_options(given: Iterable[str]) -> dict[str, float | bool | str]:
    """Return a matcher's options from `name=value`: a number, true, false, or else text."""
    options: dict[str, float | bool | str] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals or not name.isidentifier():
            raise TocsinError(
                f"`{one}` is no option of a matcher; write it as `name=value`, such as `capacity=10`"
            )
        if name in options:
            raise TocsinError(f"the option `{name}` is given twice; give it once")
        options[name] = _value(text)
    return options


def _value(text: str) -> float | bool | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
