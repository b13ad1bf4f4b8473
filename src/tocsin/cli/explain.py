"""`tocsin explain`: why a subscription matches or not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from tocsin.cli import options
from tocsin.cli.output import opened, results
from tocsin.cli.terminal import FaultLog, answer_text, counted, note, shortened, warn
from tocsin.engine import Engine, EventClock, ViewExplanation
from tocsin.formats import EventFile, EventReader, Fault
from tocsin.formats.files import is_readable, is_standard
from tocsin.formats.records import UnreadableRecord, json_array
from tocsin.language import check, to_text
from tocsin.language.explanation import Reason
from tocsin.language.printer import term_text, value_text
from tocsin.model import Event, Filter, Sequence
from tocsin.model.errors import EventError, TocsinError
from tocsin.sequences.algebra import HIDDEN
from tocsin.sequences.explanation import ConditionText, NodeExplanation, SequenceExplanation
from tocsin.sequences.inspection import Instance, NodeState

_WIDTH = 60  # of a value
_MARKS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}

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
    engine: Engine, query: Sequence, source: EventFile | None, graph: Path | None, log: FaultLog
) -> None:
    """Print a sequence's automaton and, after the events, its instances; exit with 1 if none completed."""
    completed = 0
    if source is not None:
        completed = sum(1 for _ in engine.publish_stream(source, on_error=log, batch_size=256))
        completed += len(engine.flush())
    why = engine.explain(_ID)
    console = results(graph)
    console.print(automaton_tree(why))
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
    console = Console(highlight=False)
    console.print(escape(why.maintenance), soft_wrap=True)
    answer = shortened(answer_text(why.answer), 500)
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
        new = shortened(answer_text(why.new_answer), 500)
        console.print(f"[green]it changes the answer to[/] {escape(new)}", soft_wrap=True)
    else:
        console.print("[red]it does not change the answer[/]")
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


def reason_tree(reason: Reason) -> Tree:
    """Return a condition as a tree: each part with its truth, each predicate with the value it was tested on."""
    mark = _MARKS[reason.truth]
    if reason.connective is None:
        return Tree(f"{mark} {escape(reason.text)}  [dim]{escape(tested_value(reason))}[/]")
    tree = Tree(f"{mark} {reason.connective}")
    for part in reason.parts:
        tree.add(reason_tree(part))
    return tree


def tested_value(reason: Reason) -> str:
    """Return the value that a predicate was tested on, in words."""
    if reason.value is None:
        is_absent = reason.truth is None or "missing" in reason.text or "present" in reason.text
        return "absent" if is_absent else ""
    caveat = ", not comparable" if reason.truth is None else ""
    return f"it is {shortened(value_text(reason.value), _WIDTH)}{caveat}"


def automaton_tree(why: SequenceExplanation) -> Tree:
    """Return a sequence's automaton as a tree: its start, its nodes with their instances, and nested sequences."""
    tree = Tree(f"begins with [bold]{escape(why.stream)} {escape(why.alias)}[/]{_condition(why.begin, 'if')}")
    for node in why.nodes:
        _add_node(tree, node)
    for name, inner in why.inner:
        tree.add(f"[dim]in parentheses: {escape(name)}[/]").add(automaton_tree(inner))
    return tree


def _add_node(tree: Tree, node: NodeExplanation) -> None:
    """Add a branch for a state of the automaton: what it waits for, and a sample of its instances."""
    instances = "" if node.state is None else f": [cyan]{counted(node.state.instances, 'instance')}[/]"
    branch = tree.add(f"waits for [bold]{escape(node.stream)} {escape(node.alias)}[/]{instances}")
    branch.add(f"takes the next event{_condition(node.on, 'with')}")
    if node.longest is not None:
        branch.add(f"for {node.longest:,} ticks at most")
    if node.again is not None:
        branch.add(f"goes round again{_condition(node.again, 'while')}")
    branch.add(f"goes on{_condition(node.onward, 'if')}")
    if node.state is not None:
        for instance in node.state.samples:
            branch.add(f"[cyan]•[/] {escape(_instance(instance))}")
        for line in _ended(node.state):
            branch.add(f"[yellow]{escape(line)}[/]")


def _condition(condition: ConditionText, word: str) -> str:
    """Return a condition with the parts that an index evaluates and the parts evaluated per instance."""
    if condition.whole == "true":
        return ""
    if condition.static is not None and condition.dynamic is not None:
        found = f"by index: {condition.static}; by instance: {condition.dynamic}"
    else:
        found = "by instance" if condition.static is None else "by index"
    return f" {word} {escape(condition.whole)}  [dim]{escape(found)}[/]"


def _instance(instance: Instance) -> str:
    """Return a line about an instance: its times, events and values."""
    held = ", ".join(
        f"{term_text(name, sequence=True)} = {'absent' if value is None else shortened(value_text(value), _WIDTH)}"
        for name, value in instance.values
        if not name.path.startswith(HIDDEN)
    )
    events = ", ".join(shortened(event.id, _WIDTH) for event in instance.events)
    more = "".join(f"; {one}" for one in (events, held) if one)
    return f"since {instance.start}, last at {instance.end}{more}"


def _ended(state: NodeState) -> Iterator[str]:
    for reason, count in state.ended:
        if count:
            event = state.last[1] if state.last and state.last[0] is reason else None
            at = "" if event is None else f"; the last one at {event.id}"
            yield f"{count:,} ended: {reason}{at}"
