"""`tocsin explain` and `tocsin test`: would it match, and why."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from tocsin.cli import options
from tocsin.cli.answers import explain_view
from tocsin.cli.automata import automaton_tree
from tocsin.cli.loading import replaying_engine
from tocsin.cli.reasons import looked_at, reason_tree
from tocsin.cli.terminal import FaultLog, counted, note, progress, shown, told, warn, watched
from tocsin.engine import Engine, EventClock
from tocsin.formats import EventFields, EventFile, EventReader, Fault
from tocsin.formats.files import is_readable
from tocsin.formats.json_lines import json_array
from tocsin.formats.records import Broken
from tocsin.language import check, to_text
from tocsin.model import Event, Notification, Sequence, View
from tocsin.model.errors import EventError, TocsinError


def explain(
    subscription: Annotated[str, typer.Argument(help="A subscription.")],
    event: Annotated[
        str | None,
        typer.Argument(
            metavar="[EVENTS]",
            help="For a filter one event in JSON, or a file that holds it; for a sequence or a view a file of events; "
            "- for standard input.",
            show_default="-",
        ),
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(help="Draw a sequence's automaton in this file, in SVG.", dir_okay=False),
    ] = None,
    input_format: options.InputFormat = None,
    stream: options.Stream = None,
    time_field: options.TimeField = None,
    start_field: options.StartField = None,
    id_field: options.IdField = None,
    stream_field: options.StreamField = None,
    disorder: options.Disorder = 0,
    tick: options.StreamTick = None,
    table: options.Tables = None,
) -> None:
    """Show of each predicate of a filter whether it holds for an event; of a sequence, where it stands after events.

    Of a view, the answer after all events but the last, and what the last one changes. Ends with 0 if the event
    satisfies the filter, the events complete the sequence, or the last one changes the answer; with 1 if not.
    """
    query = check(subscription).query
    if isinstance(query, Sequence):
        fields = EventFields(id_field, time_field, start_field, stream_field)
        with FaultLog() as log:
            engine = replaying_engine("oracle", disorder=disorder, ticks=tick or (), report=log)
            drawn_only = event is None and graph is not None
            source = (
                None
                if drawn_only
                else options.events_from(
                    event or "-", input_format, stream=stream, fields=fields, ticks=engine.ticks
                )
            )
            _explain_sequence(engine, subscription, source, graph, log)
        return
    if isinstance(query, View) and graph is None:
        fields = EventFields(id_field, time_field, start_field, stream_field)
        with FaultLog() as log:
            engine = replaying_engine("oracle", ticks=tick or (), tables=table or (), report=log)
            source = options.events_from(
                event or "-", input_format, stream=stream, fields=fields, ticks=engine.ticks
            )
            explain_view(engine, subscription, source, log)
        return
    if graph is not None:
        raise TocsinError("only a sequence has an automaton to draw; leave --graph out")
    engine = Engine(matcher="oracle", clock=EventClock(0))  # it takes every condition that has a normal form
    for warning in engine.subscribe(subscription, id="it").warnings:
        warn(warning)
    why = engine.explain("it", _one_event(event or "-", stream))
    console = Console(highlight=False)
    console.print(reason_tree(why.reason))
    for outside in why.outside:
        console.print(f"[red]✗[/] {escape(outside)}")
    if why.matched:
        console.print("[green]it matches[/]")
        return
    failed = ", ".join(f"{reason.text} ({looked_at(reason)})" for reason in why.failed)
    console.print(f"[red]it does not match[/]{': ' + escape(failed) if failed else ''}", soft_wrap=True)
    raise typer.Exit(1)


def _explain_sequence(
    engine: Engine, text: str, source: EventFile | None, graph: Path | None, log: FaultLog
) -> None:
    for warning in engine.subscribe(text, id="it").warnings:
        warn(warning)
    told = 0
    if source is not None:
        told = sum(1 for _ in engine.publish_many(source, on_error=log, batch_size=256)) + len(engine.flush())
    why = engine.explain("it")
    console = Console(highlight=False)
    console.print(automaton_tree(why))
    if graph is not None:
        graph.write_text(why.drawing(title=to_text(check(text).query)), encoding="utf-8")
        note(f"drawn in {graph}")
    if source is None:
        return
    console.print(f"completed {counted(told, 'time')} in {counted(engine.stats().published, 'event')}")
    if not told or log.count:
        raise typer.Exit(1)


def try_out(
    subscription: Annotated[str, typer.Argument(help="A subscription.")],
    events: options.EventsArgument = "-",
    limit: Annotated[int, typer.Option(min=0, help="How many of the events to show.")] = 10,
    input_format: options.InputFormat = None,
    stream: options.Stream = None,
    time_field: options.TimeField = None,
    start_field: options.StartField = None,
    id_field: options.IdField = None,
    stream_field: options.StreamField = None,
    disorder: options.Disorder = 0,
    tick: options.StreamTick = None,
    table: options.Tables = None,
    faults: options.Faults = None,
    quiet: options.Quiet = False,
) -> None:
    """Tell how often a subscription would have fired, without subscribing.

    Ends with 0 if it would have fired, with 1 if not.
    """
    fields = EventFields(id_field, time_field, start_field, stream_field)
    fired = 0
    console = Console(highlight=False)
    with FaultLog(faults) as log, progress("events", quiet=quiet) as bar:
        # For one subscription no index is worth its loading.
        engine = replaying_engine(
            "oracle", disorder=disorder, ticks=tick or (), tables=table or (), report=log
        )
        source = options.events_from(events, input_format, stream=stream, fields=fields, ticks=engine.ticks)
        for warning in engine.subscribe(subscription, id="it").warnings:
            warn(warning)
        incoming = watched(source, bar, "testing", source)
        size = 1 if source.path is None else 256
        notes = engine.publish_many(incoming, on_error=log, batch_size=size)
        for one in chain(notes, _at_last(engine)):
            fired += 1
            if fired <= limit:
                events_of = ", ".join(one.event_ids)
                console.print(f"{events_of}: {shown(told(one), 200)}", markup=False, soft_wrap=True)
    examined = engine.stats().published
    if fired > limit:
        console.print(f"… and {fired - limit:,} more")
    share = f" ({fired / examined:.2%})" if examined else ""
    console.print(f"it would have fired {counted(fired, 'time')} in {counted(examined, 'event')}{share}")
    if log.count:
        note(f"{counted(log.count, 'record')} refused or late")
    if not fired:
        raise typer.Exit(1)


def _at_last(engine: Engine) -> Iterator[Notification]:
    """Return what is told of the events that still wait, once there are no others."""
    yield from engine.flush()


def _one_event(text: str, stream: str | None) -> Event:
    if text == "-":
        raw = sys.stdin.buffer.read()
    elif text.lstrip().startswith("{"):
        raw = _encoded(text)
    else:
        path = Path(text)
        if not is_readable(path):
            raise EventError(f"`{shown(text, 60)}` is neither an event in JSON nor a file")
        raw = path.read_bytes()
    line, record = next(json_array(raw.strip()), (1, Broken("there is no event")))
    read = EventReader(stream=stream, clock=lambda: 0).event(record, "event", line)
    if isinstance(read, Fault):
        raise EventError(read.reason)
    return read


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as fault:  # a shell hands on bytes that are no UTF-8 as lone surrogates
        raise EventError(
            f"the event is not valid Unicode: a lone surrogate at position {fault.start}; write it in UTF-8"
        ) from None
