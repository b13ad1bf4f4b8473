"""`tocsin apply`: make a book of subscriptions equal to a set."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from tocsin.cli.subscription_loading import check_entry, load_entries
from tocsin.cli.terminal import complain, counted, note
from tocsin.engine import Difference, Engine, EventClock
from tocsin.formats import Format
from tocsin.formats.subscription_files import read_subscriptions
from tocsin.language import to_text
from tocsin.model import Query, Subscription, View
from tocsin.model.errors import SubscriptionError, TocsinError
from tocsin.model.values import read_time


def apply(
    wanted: Annotated[Path, typer.Argument(help="The subscriptions as they should be.")],
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            help="The book they are kept in, a file of JSON lines that `match -f` reads.",
            dir_okay=False,
        ),
    ],
    owner: Annotated[str, typer.Option(help="Whose subscriptions in the book are meant.")] = "default",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the difference and change nothing.")
    ] = False,
) -> None:
    """Make an owner's subscriptions in a book equal to a file: show the difference, ask, then change it at once.

    Nothing is changed if any subscription is at fault. Ends with 0 if the book is as wanted, with 1 if not.
    """
    if to.suffix not in (".jsonl", ".ndjson"):
        raise TocsinError(f"a book is a file of JSON lines; call it {to.with_suffix('.jsonl')}")
    engine = Engine(matcher="oracle", clock=EventClock())  # nothing is matched: no index is needed
    if to.is_file():
        _declare(engine, _queries(to))
    if to.is_file() and load_entries(engine, to, complain, Format.JSONL).bad:
        raise TocsinError(f"the book {to} is damaged; mend it first, for what cannot be read would be lost")
    sought = _read(wanted)
    _declare(engine, (one.query for one in sought))  # the file may be a pipe, which is read once
    difference = engine.apply(sought, owner=owner, dry_run=True)
    _show(difference, engine, {one.id: _shown(one) for one in sought})
    if not difference:
        return
    if dry_run:
        raise typer.Exit(1)
    if not yes:
        if not sys.stdin.isatty():
            raise TocsinError("nobody is there to be asked; give --yes to apply the difference")
        if not typer.confirm(f"Apply to {to}?"):
            raise typer.Exit(1)
    engine.apply(sought, owner=owner)
    _write(engine, to)
    note(f"{to} holds {counted(len(engine), 'subscription')}")


def _declare(engine: Engine, queries: Iterable[Query]) -> None:
    """Declare the tables that views read: a book says nothing of them, and none of them is needed for it."""
    for query in queries:
        for table in query.tables if isinstance(query, View) else ():
            engine.table(table.name, key="key")


def _queries(book: Path) -> Iterator[Query]:
    """Return what a book's subscriptions ask; what is wrong with others is told when they are read."""
    for entry in read_subscriptions(book, Format.JSONL):
        with suppress(TocsinError):
            yield check_entry(entry).query


def _read(path: Path) -> list[Subscription]:
    """Return all subscriptions of a file, or tell every error and raise."""
    found = []
    bad = 0
    for entry in read_subscriptions(path):
        try:
            checked = check_entry(entry)
            assert not isinstance(entry, SubscriptionError)  # noqa: S101 - raised by `check_entry`
            period = _ticks(entry.valid_from), _ticks(entry.valid_until)
            told = entry.weight, entry.witness
            found.append(Subscription(entry.id, checked.query, *period, *told))  # type: ignore[arg-type]
        except TocsinError as error:
            bad += 1
            complain(str(error))
    if bad:
        raise TocsinError(f"nothing was applied: {bad} subscription{'s are' if bad > 1 else ' is'} at fault")
    return found


def _ticks(raw: object | None) -> int | None:
    return None if raw is None else read_time(raw)


def _show(difference: Difference, engine: Engine, texts: dict[str, str]) -> None:
    console = Console(highlight=False)
    held = {one.id: _shown(one) for one in engine.subscriptions()}
    for name in difference.removed:
        console.print(f"- {name}: {held[name]}", style="red", markup=False, soft_wrap=True)
    for name in difference.changed:
        console.print(f"- {name}: {held[name]}", style="red", markup=False, soft_wrap=True)
        console.print(f"+ {name}: {texts[name]}", style="green", markup=False, soft_wrap=True)
    for name in difference.added:
        console.print(f"+ {name}: {texts[name]}", style="green", markup=False, soft_wrap=True)
    console.print(
        f"{len(difference.added)} added, {len(difference.changed)} changed, {len(difference.removed)} removed, "
        f"{len(difference.unchanged)} unchanged"
    )


def _shown(one: Subscription) -> str:
    period = [f"from {one.valid_from}"] if one.valid_from is not None else []
    period += [f"until {one.valid_until}"] if one.valid_until is not None else []
    weight = "" if one.weight == 1.0 else f"  (weight {one.weight})"
    witness = "" if one.witness is None else "  (full witness)"
    return to_text(one.query) + (f"  (valid {' '.join(period)})" if period else "") + weight + witness


def _write(engine: Engine, book: Path) -> None:
    """Write the book whole, then put it in the old one's place."""
    path = book.resolve()  # a link stays one
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("wb") as file:
            for owner, one in _owned(engine):
                record = {"id": one.id, "text": to_text(one.query), "owner": owner}
                record |= {"valid_from": one.valid_from, "valid_until": one.valid_until}  # type: ignore[dict-item]
                record |= {"weight": None if one.weight == 1.0 else one.weight}  # type: ignore[dict-item]
                record |= {"witness": one.witness}
                file.write(msgspec.json.encode({k: v for k, v in record.items() if v is not None}) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, aside)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _owned(engine: Engine) -> list[tuple[str | None, Subscription]]:
    return [(engine.owner(one.id), one) for one in engine.subscriptions()]
