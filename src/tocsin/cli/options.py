"""Options that several commands share, and option groups: a dataclass of options that a command takes as one parameter."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from tocsin.cli.output import no_standard_output
from tocsin.cli.terminal import note, warn
from tocsin.engine import Engine, EventClock
from tocsin.formats import EventFields, EventFile, EventReader, Format, open_events
from tocsin.formats.files import format_of, is_readable, is_standard, known_format, stem_of
from tocsin.formats.time_fields import find_time_fields, first_names
from tocsin.language.parsing.cursor import closest
from tocsin.model import Event
from tocsin.model.errors import EventError, KindError, TocsinError
from tocsin.model.ticks import StreamTicks, read_tick

_FEW = 5  # candidates that an error names


def _event_field(flag: str, text: str) -> Any:
    return typer.Option(flag, help=text, rich_help_panel="Event fields")


def _repeated(flag: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(flag, help=f"{text}; may be given several times.", metavar=metavar)


EventsArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="[EVENTS]",
        help="A file of events (JSON lines, JSON, CSV, Parquet, Arrow; .gz and .zst too), or - for standard input.",
    ),
]
Subscribe: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--subscribe", "-s", help="A subscription's text; may be given several times."),
]
SubscriptionFiles: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--subscriptions", "-f", help="A file of subscriptions; may be given several times."),
]
TemplateText: TypeAlias = Annotated[
    str | None,
    typer.Option("--template", help="A text with parameters, or a file that holds one.", metavar="TEXT|FILE"),
]
TemplateParameters: TypeAlias = Annotated[
    Path | None, typer.Option("--parameters", help="The template's rows: JSON lines, CSV, Parquet or Arrow.")
]
TemplateIds: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--id", help="The ids of a template's rows: a column, or a pattern such as alert-{s}-{row}."
    ),
]
InputFormat: TypeAlias = Annotated[
    Format | None,
    typer.Option("--input-format", help="The format of the events, if it is not the file's suffix."),
]
Stream: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="The stream of events that have no stream of their own; without it, the file's name without suffixes."
    ),
]
TimeField: TypeAlias = Annotated[
    str | None,
    _event_field(
        "--time-field",
        "The attribute with the time at which an event ended. If it matters and is not given, it is found by name and "
        "values; otherwise the time is that of reading.",
    ),
]
Now: TypeAlias = Annotated[
    bool, _event_field("--now", "Take the time at which an event is read, also for sequences and validity.")
]
TimeUnitName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--time-unit",
        help="What numbers in time fields count: ticks, or seconds, milliseconds, microseconds or nanoseconds since "
        "1970; without it, the size of the first number decides.",
        rich_help_panel="Event fields",
        metavar="UNIT",
    ),
]
TimeZone: TypeAlias = Annotated[
    str,
    _event_field("--timezone", "The time zone of times that have none, such as Europe/Oslo or +01:00."),
]
StartField: TypeAlias = Annotated[
    str | None, _event_field("--start-field", "The attribute with the time at which an event started.")
]
IdField: TypeAlias = Annotated[str | None, _event_field("--id-field", "The attribute with an event's id.")]
StreamField: TypeAlias = Annotated[
    str | None, _event_field("--stream-field", "The attribute with an event's stream.")
]
ValidUntilField: TypeAlias = Annotated[
    str | None,
    _event_field(
        "--valid-until-field",
        "The attribute with the time until which an event is kept for later subscriptions.",
    ),
]
OutOfOrderness: TypeAlias = Annotated[
    str,
    typer.Option(
        help="By how much events may arrive out of order for sequences: a length such as '5 minutes', or ticks.",
        metavar="LENGTH",
    ),
]
StreamTick: TypeAlias = Annotated[
    list[str] | None,
    _repeated("--tick", "The length of a stream's tick, such as 'stock=1 second'", "STREAM=LENGTH"),
]
Tables: TypeAlias = Annotated[
    list[str] | None,
    _repeated("--table", "Keep a stream as a table with this key, such as stock=symbol", "STREAM=KEY[,KEY]"),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no summary.")]


class OptionGroup:
    """A dataclass whose fields are options; see `with_option_groups`."""


@dataclass(frozen=True)
class EventOptions(OptionGroup):
    """How events are read: their format, their stream, and the attributes that hold time, start and id."""

    input_format: InputFormat = None
    stream: Stream = None
    time_field: TimeField = None
    start_field: StartField = None
    id_field: IdField = None
    stream_field: StreamField = None

    def open(
        self,
        source: str,
        ticks: StreamTicks | None = None,
        *,
        time_field: str | None = None,
        valid_until_field: str | None = None,
    ) -> EventFile:
        """Return the events of a file or of standard input; `ticks` says how the times of each stream are read.

        `time_field` is the one to take if none was given. A file's events are of the stream that is called like the file.
        """
        if is_standard(source):
            say_that_input_is_read()
        time = self.time_field or time_field
        fields = EventFields(self.id_field, time, self.start_field, self.stream_field, valid_until_field)
        self._warn_of_misspelt(fields, Path(source), self._key_of(source))
        reader = EventReader(fields, stream=self.stream_of(source), ticks=ticks)
        events = open_events(source, reader, format=self.input_format)
        if self.input_format is None:
            _warn_of_guessed_format(events)
        return events

    def _key_of(self, source: str) -> Sequence[str]:  # noqa: ARG002 - where events become rows of a table
        """Return the attributes that are the key of a source's table."""
        return ()

    def _warn_of_misspelt(self, fields: EventFields, path: Path, key: Sequence[str]) -> None:
        """Warn of each field that the first records of a file lack, if they have one with a similar name."""
        named = (
            ("--time-field", fields.time),
            ("--start-field", fields.start),
            ("--id-field", fields.id),
            ("--stream-field", fields.stream),
            ("--valid-until-field", fields.valid_until),
            *(("--table", name) for name in key),
        )
        given = [(option, name) for option, name in named if name is not None]
        if not given or is_standard(path) or not path.is_file():
            return
        try:
            known = first_names(path, self.input_format or format_of(path))
        except Exception:  # noqa: BLE001 - whatever it is, it is reported where the events are read
            return
        for option, name in given:
            near = None if name in known else closest(name, tuple(known))
            if near is not None:
                warn(f"{option}: the first records of {path} have no `{name}`; did you mean `{near}`?")

    def stream_of(self, source: str) -> str | None:
        """Return the stream of a source's events that have none of their own."""
        if self.stream is not None or self.stream_field is not None or is_standard(source):
            return self.stream
        return stem_of(Path(source))


def _warn_of_guessed_format(events: EventFile) -> None:
    """Warn of a file that is read as JSON lines for want of a known suffix, and does not begin with one."""
    path = events.path
    if path is None or not path.is_file() or known_format(path) is not None or not path.stat().st_size:
        return
    if not events.first_records(1):
        formats = ", ".join(Format)
        warn(
            f"the suffix of {path} names no format, and it is read as JSON lines; --input-format names one: {formats}"
        )


@dataclass(frozen=True)
class ReplayOptions(EventOptions):
    """How events are replayed through an engine: their order, the ticks of streams, and the tables."""

    now: Now = False
    time_unit: TimeUnitName = None
    timezone: TimeZone = "UTC"
    out_of_orderness: OutOfOrderness = "0"
    tick: StreamTick = None
    table: Tables = None

    def engine(self, matcher: str | None, report: Callable[[object], None], threads: int = 1) -> Engine:
        """Return an engine that runs on the events' own time and accepts late events for filters.

        An event that comes too late for sequences is reported.
        """

        def late(event: Event) -> None:
            report(
                f"{event.id}: it ended at {engine.ticks.shown(event.end, event.stream)}, before an event that came "
                "earlier, and reaches no sequence; --out-of-orderness says by how much events may come out of order"
            )

        if self.now and self.time_field is not None:
            raise TocsinError(
                "--now takes the time of reading, and --time-field an attribute: give one of them"
            )
        delay = self.out_of_orderness.strip()
        order: dict[str, Any] = {
            "lateness": 2**62,
            "out_of_orderness": int(delay) if delay.isdecimal() else delay,
        }
        times: dict[str, Any] = {"timezone": self.timezone, "time_unit": self.time_unit}
        engine = Engine(matcher=matcher, clock=EventClock(), on_late=late, threads=threads, **order, **times)
        for stream, length in stream_ticks(self.tick or ()).items():
            engine.stream(stream, tick=length)
        for name, key in table_keys(self.table or ()).items():
            engine.table(name, key=key)
        return engine

    def _key_of(self, source: str) -> Sequence[str]:
        """Return the attributes that are the key of a source's table."""
        return table_keys(self.table or ()).get(self.stream_of(source) or "", ())

    def open_for(
        self,
        engine: Engine,
        source: str,
        valid_until_field: str | None = None,
        *,
        quiet: bool = False,
        needs_time: bool = False,
    ) -> EventFile:
        """Return the events to publish to an engine that has its subscriptions.

        If it matters to them, or to the caller, when events happened, a file's time field is found, or `EventError` names the candidates.
        """
        found: str | None = None
        needs_time = needs_time or engine.needs_event_times or valid_until_field is not None
        if needs_time and self.time_field is None and not self.now:
            found = self._find_time_field(source, quiet=quiet)
        return self.open(source, engine.ticks, time_field=found, valid_until_field=valid_until_field)

    def _find_time_field(self, source: str, *, quiet: bool) -> str | None:
        """Return the attribute with the time of a file's events; None for a pipe, whose events happen now."""
        path = Path(source)
        if is_standard(source) or not path.is_file():
            if not quiet and (is_standard(source) or is_readable(path)):
                note("the time of an event is the time at which it is read; --time-field names an attribute")
            return None
        fields = find_time_fields(path, self.input_format or format_of(path))
        if fields.is_empty:
            return None
        if fields.best is not None:
            if not quiet:
                note(
                    f"the time of an event is its `{fields.best}`; --time-field names another attribute, and --now "
                    "takes the time of reading"
                )
            return fields.best
        which = (
            f" ({', '.join(f'`{name}`' for name in fields.candidates[:_FEW])}?)" if fields.candidates else ""
        )
        raise EventError(
            f"it matters when events happened, and no attribute of {source} is their time beyond doubt: name one with "
            f"--time-field{which}, or take the time of reading with --now"
        )


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return `command` with each parameter that is an `OptionGroup` replaced by the group's options."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type[Any]] = {}
    expanded: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        annotation = parameter.annotation
        if isinstance(annotation, type) and issubclass(annotation, OptionGroup):
            groups[parameter.name] = annotation
            hints = get_type_hints(annotation, include_extras=True)
            expanded += [
                parameter.replace(name=one.name, annotation=hints[one.name], default=one.default)
                for one in fields(annotation)  # type: ignore[arg-type]
            ]
        else:
            expanded.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        command(**given)

    run.__signature__ = signature.replace(parameters=expanded)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in expanded}
    return run


def assignments(option: str, given: Iterable[str], form: str) -> Iterator[tuple[str, str]]:
    """Return the name and the value of each `name=value`; `form` describes an option that is written otherwise."""
    for one in given:
        name, _, value = one.rpartition("=")
        if not name or not value:
            raise TocsinError(f"{option} is written as {form}, not {one!r}")
        yield name, value


def stream_ticks(given: Iterable[str]) -> dict[str, int]:
    """Return the microseconds of a tick of each stream, from the values of `--tick`."""
    found = {}
    for stream, tick in assignments("--tick", given, "stream=length, such as 'stock=1 second'"):
        try:
            found[stream] = read_tick(tick)
        except KindError as fault:
            raise TocsinError(f"--tick {stream}={tick}: {fault}") from None
    return found


def table_keys(given: Iterable[str]) -> dict[str, list[str]]:
    """Return the key of each table, from the values of `--table`."""
    found = {}
    for stream, keys in assignments("--table", given, "stream=key, such as stock=symbol"):
        found[stream] = [key.strip() for key in keys.split(",")]
        if not all(found[stream]):
            raise TocsinError(f"--table {stream}={keys}: a key is empty; separate keys by single commas")
    return found


def no_file(text: str) -> str:
    """Return a subscription's text, or raise `TocsinError` if it is the name of a file: the arguments changed places."""
    if Path(text).suffix and is_readable(Path(text)) and not is_standard(text):
        raise TocsinError(
            f"the subscription is the first argument, and `{text}` is a file; events stand after it"
        )
    return text


SubscriptionArgument: TypeAlias = Annotated[str, typer.Argument(help="A subscription.", callback=no_file)]


def say_that_input_is_read() -> None:
    """Say that events are read from a terminal, which is otherwise a silent wait."""
    if sys.stdin is not None and sys.stdin.isatty():
        note(
            "reading events from the terminal, one in JSON on each line, until Ctrl-D; or name a file of events"
        )


def check_standard_input(*sources: str | Path | None) -> None:
    """Raise `TocsinError` if more than one source is standard input."""
    if sum(1 for source in sources if source is not None and is_standard(source)) > 1:
        raise TocsinError("only one thing can be read from standard input (-); name files for the others")


def to_be_written(path: Path | None) -> Path | None:
    """Return `path`, or raise `TocsinError` before a long run if the file cannot be written."""
    if path is None or is_standard(path):
        return path
    if not path.parent.is_dir():
        raise TocsinError(f"there is no folder {path.parent}; make it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise TocsinError(f"{path} cannot be written")
    return path


def binary_to_be_written(path: Path | None) -> Path | None:
    """Return `path`, or raise for a file that cannot be written, standard output among them: its content is no text."""
    return to_be_written(no_standard_output(path))


Faults: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--faults",
        help="Write every record that is refused or late to this file (- for standard output), with the reason.",
        dir_okay=False,
        callback=to_be_written,
    ),
]
Json: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="Write the result to this file as JSON; - for standard output, which then has nothing else.",
        metavar="FILE",
        dir_okay=False,
        callback=to_be_written,
    ),
]


Threads = Annotated[
    int, typer.Option(help="Match a batch of events by up to so many threads, in parts.", min=1)
]


def matcher_options(given: Iterable[str]) -> dict[str, float | bool | str]:
    """Return a matcher's options from `name=value`: a number, true, false, or else text."""
    options: dict[str, float | bool | str] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals or not name.isidentifier():
            form = "`name=value`, such as `capacity=10`"
            raise TocsinError(f"`{one}` is no option of a matcher; write it as {form}")
        if name in options:
            raise TocsinError(f"the option `{name}` is given twice; give it once")
        options[name] = _value(text)
    return options


def _value(text: str) -> float | bool | str:
    """Return the boolean, integer or float that a text stands for, else the text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
