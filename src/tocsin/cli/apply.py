"""`tocsin apply`: make a file of stored subscriptions equal to another file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console

from tocsin.cli import options
from tocsin.cli.json_results import Record, error_record, reported_errors, write_result
from tocsin.cli.output import results
from tocsin.cli.subscription_loading import check_entry, load_entries
from tocsin.cli.terminal import complain, counted, note, warn
from tocsin.engine import Difference, Engine, EventClock
from tocsin.formats import Format
from tocsin.formats.files import is_standard
from tocsin.formats.subscription_files import read_subscriptions
from tocsin.language import to_text
from tocsin.model import Query, Subscription, View
from tocsin.model.errors import SubscriptionError, TocsinError
from tocsin.model.timestamps import format_rfc3339
from tocsin.structures.whole_files import replacing
from tocsin.subscriptions.options import read_options

_COMMAND: Final = "apply"


def apply(
    wanted: Annotated[Path, typer.Argument(help="A file with the subscriptions as they should be.")],
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            help="The file that stores the subscriptions: JSON lines, which `match -f` reads.",
            dir_okay=False,
        ),
    ],
    owner: Annotated[str, typer.Option(help="The owner whose subscriptions are replaced.")] = "default",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Apply without asking.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the difference and change nothing.")
    ] = False,
    json: options.Json = None,
) -> None:
    """Make an owner's stored subscriptions equal to a file: show the difference, ask, then apply it at once.

    Nothing is changed if any subscription is at fault. Ends with 0 if the stored subscriptions equal the file, with
    1 if not.
    """
    with reported_errors(json, _COMMAND):
        _check_stored(to)
        engine = Engine(matcher="oracle", clock=EventClock())  # nothing is matched, so no index is needed
        if to.is_file():
            _declare(engine, _queries(to))
        if to.is_file() and load_entries(engine, to, complain, Format.JSONL):
            raise TocsinError(
                f"{to} has subscriptions that cannot be read and would be lost; correct them first"
            )
        wanted_set, errors = _read(wanted)
        if errors:
            fault = f"{len(errors)} subscription{'s are' if len(errors) > 1 else ' is'} at fault"
            write_result(json, _COMMAND, {"applied": False}, errors=map(error_record, errors))
            complain(f"nothing was applied: {fault}")
            raise typer.Exit(2)
        _declare(engine, (one.query for one in wanted_set))  # the file may be a pipe, which is read once
        difference = engine.apply(wanted_set, owner=owner, dry_run=True)
        new = {one.id: _shown(one) for one in wanted_set}
        record = _show(difference, engine, new, results(json))
        is_applied = bool(difference) and not dry_run and _is_confirmed(to, yes=yes)
        if is_applied:
            engine.apply(wanted_set, owner=owner)
            _write(engine, to)
            note(f"{to} has {counted(len(engine), 'subscription')}")
        write_result(json, _COMMAND, {**record, "applied": is_applied, "stored": len(engine)})
    if difference and not is_applied:
        raise typer.Exit(1)


def _check_stored(to: Path) -> None:
    """Raise `TocsinError` if a file cannot store subscriptions."""
    if is_standard(to):
        raise TocsinError(
            "the stored subscriptions are replaced at once: --to names a file, not standard output"
        )
    if to.suffix not in (".jsonl", ".ndjson"):
        raise TocsinError(f"stored subscriptions are JSON lines; name the file {to.with_suffix('.jsonl')}")


def _is_confirmed(to: Path, *, yes: bool) -> bool:
    """Ask whether to apply the difference; raise `TocsinError` if there is nobody to ask."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise TocsinError("standard input is no terminal to confirm at; give --yes to apply it")
    return typer.confirm(f"Apply to {to}?", err=True)


def _declare(engine: Engine, queries: Iterable[Query]) -> None:
    """Declare the tables that views read; their keys do not matter here, since no event is published."""
    for query in queries:
        for table in query.tables if isinstance(query, View) else ():
            engine.table(table.name, key="key")


def _queries(stored: Path) -> Iterator[Query]:
    """Return the queries of stored subscriptions; faulty ones are reported when they are loaded."""
    for entry in read_subscriptions(stored, Format.JSONL):
        with suppress(TocsinError):
            yield check_entry(entry).query


def _read(path: Path) -> tuple[list[Subscription], list[TocsinError]]:
    """Return all subscriptions of a file, and the errors of faulty ones, which are printed."""
    found, errors = [], []
    for entry in read_subscriptions(path):
        try:
            checked = check_entry(entry)
            assert not isinstance(entry, SubscriptionError)  # noqa: S101 - raised by `check_entry`
            for warning in checked.warnings:
                warn(f"subscription `{entry.id}`: {warning}")
            options = read_options(entry.valid_from, entry.valid_until, id_=entry.id)
            valid_from, valid_until = options.validity.bounds()
            rest: Any = entry.weight, entry.witness
            found.append(Subscription(entry.id, checked.query, valid_from, valid_until, *rest))
        except TocsinError as error:
            errors.append(error)
            complain(str(error))
    return found, errors


def _show(difference: Difference, engine: Engine, new: dict[str, str], console: Console) -> Record:
    """Print the subscriptions that are removed, changed and added, as a diff, and return them for JSON."""
    old = {one.id: _shown(one) for one in engine.subscriptions()}
    for name in difference.removed:
        console.print(f"- {name}: {old[name]}", style="red", markup=False, soft_wrap=True)
    for name in difference.changed:
        console.print(f"- {name}: {old[name]}", style="red", markup=False, soft_wrap=True)
        console.print(f"+ {name}: {new[name]}", style="green", markup=False, soft_wrap=True)
    for name in difference.added:
        console.print(f"+ {name}: {new[name]}", style="green", markup=False, soft_wrap=True)
    console.print(
        f"{len(difference.added)} added, {len(difference.changed)} changed, {len(difference.removed)} removed, "
        f"{len(difference.unchanged)} unchanged"
    )
    return {
        "added": [{"id": name, "text": new[name]} for name in difference.added],
        "changed": [{"id": name, "old": old[name], "new": new[name]} for name in difference.changed],
        "removed": [{"id": name, "text": old[name]} for name in difference.removed],
        "unchanged": len(difference.unchanged),
    }


def _shown(one: Subscription) -> str:
    bounds = (("from", one.valid_from), ("until", one.valid_until))
    period = [f"{which} {_bound(bound)}" for which, bound in bounds if bound is not None]
    weight = "" if one.weight == 1.0 else f"  (weight {one.weight})"
    witness = "" if one.witness is None else "  (full witness)"
    return to_text(one.query) + (f"  (valid {' '.join(period)})" if period else "") + weight + witness


def _bound(bound: int | datetime) -> int | str:
    return format_rfc3339(bound) if isinstance(bound, datetime) else bound


def _write(engine: Engine, stored: Path) -> None:
    """Write all subscriptions to a new file, then replace the old one by it."""
    with replacing(stored) as file:
        for owner, one in _owned(engine):
            record: dict[str, object] = {
                "id": one.id,
                "text": to_text(one.query),
                "owner": owner,
                "valid_from": one.valid_from,
                "valid_until": one.valid_until,
                "weight": None if one.weight == 1.0 else one.weight,
                "witness": one.witness,
            }
            file.write(msgspec.json.encode({k: v for k, v in record.items() if v is not None}) + b"\n")


def _owned(engine: Engine) -> list[tuple[str | None, Subscription]]:
    return [(engine.owner(one.id), one) for one in engine.subscriptions()]
