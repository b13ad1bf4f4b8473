"""`tocsin explain`: why a subscription matches or not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli import options
from tocsin.cli.output import opened, results
from tocsin.cli.terminal import FaultLog, counted, note, print_trees, shortened, warn
from tocsin.engine import Engine, EventClock, ViewExplanation
from tocsin.formats import EventFile, EventReader, Fault
from tocsin.formats.files import is_readable, is_standard
from tocsin.formats.records import UnreadableRecord, json_array
from tocsin.language import check, to_text
from tocsin.model import Event, Filter, Sequence
from tocsin.model.errors import EventError, TocsinError
from tocsin.views.explanation_tree import view_trees

_ID = "it"


@options.with_option_groups
def explain(
    subscription: Annotated[str, typer.Argument(help="A subscription.")],
    event: Annotated[
        str | None,
        typer.Argument(
            metavar="[EVENTS]",
            help="For a filter, one event in JSON or a file that holds it; for a sequence or a view, a file of "
            "events; - for standard input.",
            show_default="-",
        ),
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(help="Draw a sequence's automaton in this file, in SVG.", dir_okay=False)
    ] = None,
    *,
    replay: options.ReplayOptions,
) -> None:
    """Explain why a filter matches an event or not, or show a sequence's state, or the change of a view's answer.

    A filter shows the truth of each predicate for one event. A sequence shows its automaton after all events. A
    view shows its answer after all events but the last, and the change that the last one makes. Ends with 0 if
    the event matches the filter, the events complete the sequence, or the last event changes the answer; with 1
    if not.
    """
    query = check(subscription).query
    if graph is not None and not isinstance(query, Sequence):
        raise TocsinError("only a sequence has an automaton to draw; leave --graph out")
    if isinstance(query, Filter):
        _explain_filter(subscription, _one_event(event or "-", replay.stream))
        return
    with FaultLog() as log:
        engine = replay.engine("oracle", log)
        _subscribe(engine, subscription)
        source = None if event is None and graph is not None else replay.open(event or "-", engine.ticks)
        if isinstance(query, Sequence):
            _explain_sequence(engine, query, source, graph, log)
        elif source is not None:
            _explain_view(engine, source, log)


def _subscribe(engine: Engine, text: str) -> None:
    for warning in engine.subscribe(text, id=_ID).warnings:
        warn(warning)


def _explain_filter(text: str, event: Event) -> None:
    """Print why an event matches a filter or does not; exit with 1 if it does not."""
    engine = Engine(matcher="oracle", clock=EventClock(0))  # it takes every condition that has a normal form
    _subscribe(engine, text)
    why = engine.explain(_ID, event)
    print_trees(why.trees(), results())
    if not why.matched:
        raise typer.Exit(1)


def _explain_sequence(
    engine: Engine, query: Sequence, source: EventFile | None, graph: Path | None, log: FaultLog
) -> None:
    """Print a sequence's automaton and, after the events, its instances; exit with 1 if none completed."""
    completed = 0
    if source is not None:
        completed = sum(1 for _ in engine.publish_stream(source, on_error=log, batch_size=256))
        completed += len(engine.flush())
    why = engine.explain(_ID)
    console = results(graph)
    print_trees(why.trees(), console)
    if graph is not None:
        with opened(graph) as file:
            file.write(why.drawing(title=to_text(query)).encode())
        if not is_standard(graph):
            note(f"drawn in {graph}")
    if source is None:
        return
    console.print(f"completed {counted(completed, 'time')} in {counted(engine.stats().published, 'event')}")
    if not completed or log.count:
        raise typer.Exit(1)


def _explain_view(engine: Engine, source: EventFile, log: FaultLog) -> None:
    """Publish all events but the last, and show the change that the last one makes; end with 1 if there is none."""
    last: Event | None = None
    for event in source:
        if isinstance(event, Fault):
            log(event)
            continue
        if last is not None:
            engine.publish_many([last], on_error=log)
        last = event
    if last is None:
        raise EventError("there is no event to explain by")
    why = engine.explain(_ID, last)
    assert isinstance(why, ViewExplanation)  # noqa: S101 - the subscription is a view
    published = counted(engine.stats().published, "event")
    print_trees(view_trees(why, before=f"after {published}", event="the last event"), results())
    if not why.matched or log.count:
        raise typer.Exit(1)


def _one_event(text: str, stream: str | None) -> Event:
    """Return the event of a JSON text, of a file, or of standard input (`-`)."""
    if text == "-":
        raw = sys.stdin.buffer.read()
    elif text.lstrip().startswith("{"):
        raw = _encoded(text)
    else:
        path = Path(text)
        if not is_readable(path):
            raise EventError(f"`{shortened(text, 60)}` is neither an event in JSON nor a file")
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
