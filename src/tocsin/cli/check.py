"""`tocsin check`: every error and warning in subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from tocsin.cli import options
from tocsin.cli.coverage import NO_EVENTS
from tocsin.cli.json_results import Record, error_record, reported_errors, warning_record, write_result
from tocsin.cli.subscription_loading import EntryError, check_entry
from tocsin.cli.terminal import FaultLog, complain, counted, note, progress, warn, watched
from tocsin.formats import EventFile, Fault
from tocsin.formats.files import is_readable
from tocsin.formats.subscription_files import Entry, UnreadableEntryError, read_subscriptions
from tocsin.language.schema_inference import ObservedSchema
from tocsin.model import Query, Sequence
from tocsin.model.errors import SubscriptionError, TocsinError
from tocsin.sequences.compiling.compiler import compile_sequence
from tocsin.sequences.dependencies import Dependencies

_COMMAND: Final = "check"


class _Entries:
    """The subscriptions to check, and how many have been read."""

    def __init__(self, files: list[Path], texts: list[str]) -> None:
        self._files = files
        self._texts = texts
        self.size: int | None = None
        self.position = 0

    def __iter__(self) -> Iterator[Entry | SubscriptionError]:
        for number, text in enumerate(self._texts, 1):
            yield Entry("-s", number, 0, f"s{number}", text)
        found = [list(read_subscriptions(file)) for file in self._files]
        self.size = len(self._texts) + sum(map(len, found))
        seen: dict[str, Entry] = {}
        for entries in found:
            for entry in entries:
                self.position += 1
                if isinstance(entry, Entry):
                    first = seen.setdefault(entry.id, entry)
                    if first is not entry:
                        yield UnreadableEntryError(
                            entry.source,
                            entry.line,
                            f"the id `{entry.id}` is given at {first.location} already",
                        )
                        continue
                yield entry


def check(
    files: Annotated[list[Path] | None, typer.Argument(help="Files of subscriptions.")] = None,
    subscribe: options.Subscribe = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="A file of events: warn of attributes that no event has, and of values that no event can match."
        ),
    ] = None,
    input_format: options.InputFormat = None,
    stream: options.Stream = None,
    stream_field: options.StreamField = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
) -> None:
    """Report every error and warning in subscriptions, each with its place.

    Ends with 0 if there is no error, with 1 if there is one, with 2 if nothing could be checked.
    """
    with reported_errors(json, _COMMAND):
        if not files and not subscribe:
            raise TocsinError("nothing to check: name files of subscriptions, or give -s TEXT")
        options.check_standard_input(against, *(files or ()))
        for file in files or ():
            if not is_readable(file) and any(sign in str(file) for sign in "<=>"):
                raise TocsinError(f"there is no file `{file}`; a text is checked with -s TEXT")
        entries = _Entries(files or [], subscribe or [])
        found = _Findings()
        schema = None
        with progress("subscriptions", quiet=quiet) as bar:
            if against is not None:
                reading = options.EventOptions(input_format, stream, stream_field=stream_field)
                schema = _observed_schema(reading.open(against))
            for entry in watched(entries, bar, "checking", entries):
                found.check(entry)
        if schema is not None:
            found.compare(schema)
    if not quiet:
        note(
            f"{counted(found.count, 'subscription')}: {len(found.errors):,} at fault, "
            f"{counted(len(found.warnings), 'warning')}"
        )
    write_result(json, _COMMAND, {"subscriptions": found.count}, errors=found.errors, warnings=found.warnings)
    if found.errors:
        raise typer.Exit(1)


class _Findings:
    """The errors and warnings of subscriptions, printed as they are found."""

    def __init__(self) -> None:
        self.count = 0
        self.errors: list[Record] = []
        self.warnings: list[Record] = []
        self._streams = Dependencies()
        self._read: list[tuple[Entry, Query]] = []

    def check(self, entry: Entry | SubscriptionError) -> None:
        """Check one subscription by itself."""
        self.count += 1
        try:
            checked = check_entry(entry)
            assert isinstance(entry, Entry)  # noqa: S101 - an error was raised above
            if isinstance(checked.query, Sequence):
                _check_cycles(self._streams, checked.query, entry)
        except TocsinError as error:
            self.errors.append(error_record(error))
            complain(str(error))
            return
        self._read.append((entry, checked.query))
        self._warn(entry, checked.warnings)

    def compare(self, schema: ObservedSchema) -> None:
        """Compare all subscriptions that could be read with the schema of events."""
        schema.add_published(query for _, query in self._read)
        for entry, query in self._read:
            self._warn(entry, schema.warnings(query))

    def _warn(self, entry: Entry, warnings: tuple[str, ...]) -> None:
        for warning in warnings:
            self.warnings.append(warning_record(warning, entry))
            warn(f"{entry.location}: subscription `{entry.id}`: {warning}")


def _check_cycles(streams: Dependencies, query: Sequence, entry: Entry) -> None:
    """Add the streams that a sequence reads and publishes; raise if it would read its own output."""
    try:
        streams.add(compile_sequence(query).reads, query.publish)
    except SubscriptionError as fault:
        raise EntryError(SubscriptionError(fault.reason, entry.id), entry) from None


def _observed_schema(source: EventFile) -> ObservedSchema:
    """Return the schema of a file's events; unreadable events are logged."""
    schema = ObservedSchema()
    with progress("events") as bar, FaultLog() as log:
        for event in watched(source, bar, "reading events", source):
            if isinstance(event, Fault):
                log(event)
            else:
                schema.add(event)
    if not schema.events and not log.count:
        warn(NO_EVENTS)
    return schema
