"""`tocsin explain`: whether a subscription matches, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from tocsin.cli import options
from tocsin.cli.explanations import automaton_tree, reason_tree, tested_value
from tocsin.cli.subscription_loading import replaying_engine
from tocsin.cli.terminal import FaultLog, counted, note, shown, shown_answer, warn
from tocsin.engine import Engine, EventClock, ViewExplanation
from tocsin.formats import EventFields, EventFile, EventReader, Fault
from tocsin.formats.files import is_readable
from tocsin.formats.records import UnreadableRecord, json_array
from tocsin.language import check, to_text
from tocsin.model import Event, Sequence, View
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
            _explain_view(engine, subscription, source, log)
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
    failed = ", ".join(f"{reason.text} ({tested_value(reason)})" for reason in why.failed)
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


def _explain_view(engine: Engine, text: str, source: EventFile, log: FaultLog) -> None:
    """Publish all events but the last, and show what that one changes; end with 1 if it is nothing."""
    for warning in engine.subscribe(text, id="it").warnings:
        warn(warning)
    last: Event | None = None
    for event in source:
        if isinstance(event, Fault):
            log(event)
            continue
        if last is not None:
            for _ in engine.publish_many([last], on_error=log):
                pass
        last = event
    if last is None:
        raise EventError("there is no event to explain by")
    why = engine.explain("it", last)
    assert isinstance(why, ViewExplanation)  # noqa: S101 - it was subscribed as one
    console = Console(highlight=False)
    console.print(escape(why.followed), soft_wrap=True)
    answer = shown(shown_answer(why.answer), 500)
    console.print(f"after {counted(engine.stats().published, 'event')}: {escape(answer)}", soft_wrap=True)
    if why.before is not None:
        console.print("the row that it replaces:")
        console.print(reason_tree(why.before))
    if not why.outside:
        console.print("the last event:")
        console.print(reason_tree(why.reason))
    for outside in why.outside:
        console.print(f"[red]✗[/] {escape(outside)}")
    if why.matched:
        console.print(
            f"[green]it changes the answer to[/] {escape(shown(shown_answer(why.then), 500))}", soft_wrap=True
        )
    else:
        console.print("[red]it does not change the answer[/]")
    if not why.matched or log.count:
        raise typer.Exit(1)


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
    line, record = next(json_array(raw.strip()), (1, UnreadableRecord("there is no event")))
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
