"""`tocsin explain`: why a subscription matches or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from tocsin.cli import options
from tocsin.cli.coverage import observed, warn_of_unseen
from tocsin.cli.explained_events import is_json, open_explained
from tocsin.cli.explanation_records import TruthCounts, filter_record, sequence_record, view_record
from tocsin.cli.json_results import Record, reported_errors, warning_record, write_result
from tocsin.cli.output import check_distinct, opened, results
from tocsin.cli.plans import show_plan
from tocsin.cli.terminal import FaultLog, counted, note, print_trees, progress, warn, watched
from tocsin.display.trees import Branch, Style, StyledText
from tocsin.engine import Engine, EventClock, EventExplanation, ViewExplanation
from tocsin.formats import EventFile, Fault
from tocsin.formats.files import is_standard
from tocsin.language import check, to_text
from tocsin.language.schema_inference import ObservedSchema
from tocsin.model import Event, Filter, Sequence
from tocsin.model.errors import EventError, TocsinError
from tocsin.sequences.explanation import SequenceExplanation
from tocsin.views.explanation_tree import view_trees

_TRUTHS: Final = {True: ("✓", Style.GOOD), False: ("✗", Style.BAD), None: ("?", Style.UNKNOWN)}
_ID = "it"
_COMMAND = "explain"


@options.with_option_groups
def explain(
    subscription: options.SubscriptionArgument,
    event: Annotated[
        str | None,
        typer.Argument(
            metavar="[EVENTS]",
            help="A file of events, or - for standard input; for a filter also an event in JSON, or an array of them.",
            show_default="-",
        ),
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(
            help="Draw a sequence's automaton in this file, in SVG.",
            dir_okay=False,
            callback=options.to_be_written,
        ),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Show how events reach a filter in the index instead: how many it is checked for, and what is checked in which "
            "order. Without EVENTS, the shares are guesses.",
        ),
    ] = False,
    among: Annotated[
        list[Path] | None,
        typer.Option(
            help="With --plan, a file of subscriptions that are stored beside the filter, or with it: SUBSCRIPTION may be an "
            "id in it; may be given several times."
        ),
    ] = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
    *,
    replay: options.ReplayOptions,
) -> None:
    """Explain why a filter matches an event or not, or show a sequence's state, or the change of a view's answer.

    A filter shows the truth of each predicate for one event, or how often it is true in several. A sequence shows its automaton after all events. A
    view shows its answer after all events but the last, and the change that the last one makes. Ends with 0 if
    an event matches the filter, the events complete the sequence, or the last event changes the answer; with 1
    if not. With --plan, ends with 0.
    """
    with reported_errors(json, _COMMAND):
        if among and not plan:
            raise TocsinError("--among names the subscriptions that a plan is made for; give --plan, too")
        if plan:
            if graph is not None:
                raise TocsinError(
                    "--graph draws the automaton of a sequence, and --plan is of a filter: give one of them"
                )
            with FaultLog() as log:
                show_plan(subscription, event, among or [], replay, log, json=json, quiet=quiet)
            if log.count:
                raise typer.Exit(1)
            return
        query = check(subscription).query
        if graph is not None and not isinstance(query, Sequence):
            raise TocsinError("only a sequence has an automaton to draw; leave --graph out")
        check_distinct(json=json, graph=graph)
        with FaultLog() as log:
            output = _Output(results(json, graph), json, log)
            if isinstance(query, Filter):
                is_positive = _explain_filter(subscription, event or "-", replay, output, quiet=quiet)
            else:
                if event is not None and is_json(event):
                    raise EventError(
                        "an event in JSON explains a filter; a sequence and a view take events from a file, or from "
                        "standard input"
                    )
                engine = replay.engine("oracle", log)
                output.warnings = _subscribe(engine, subscription)
                source = (
                    None
                    if event is None and graph is not None
                    else replay.open_for(engine, event or "-", quiet=quiet)
                )
                if isinstance(query, Sequence):
                    is_positive = _explain_sequence(engine, query, source, graph, output)
                else:
                    assert source is not None  # noqa: S101 - only a sequence has a graph
                    is_positive = _explain_view(engine, source, output)
    if not is_positive or log.count:
        raise typer.Exit(1)


class _Output:
    """Where an explanation goes: the console, a file of JSON, the log of refused events."""

    def __init__(self, console: Console, json: Path | None, log: FaultLog) -> None:
        self.console = console
        self.log = log
        self.warnings: tuple[str, ...] = ()
        self._json = json

    def warn_of_unseen(self, engine: Engine, schema: ObservedSchema) -> None:
        """Warn of names that the subscription has and no event."""
        self.warnings = (*self.warnings, *warn_of_unseen(engine, schema, self.log.count))

    def write(self, record: Record) -> None:
        """Write the record of an explanation."""
        warnings = [warning_record(warning) for warning in self.warnings]
        write_result(self._json, _COMMAND, record, warnings=warnings, log=self.log)


def _subscribe(engine: Engine, text: str) -> tuple[str, ...]:
    warnings = engine.subscribe(text, id=_ID).warnings
    for warning in warnings:
        warn(warning)
    return warnings


def _explain_filter(
    text: str, given: str, replay: options.ReplayOptions, output: _Output, *, quiet: bool
) -> bool:
    """Print why an event matches a filter or does not, or how often each predicate holds in several events."""
    times: dict[str, Any] = {"timezone": replay.timezone, "time_unit": replay.time_unit}
    # The oracle takes every condition that has a normal form.
    engine = Engine(matcher="oracle", clock=EventClock(0), **times)
    output.warnings = _subscribe(engine, text)
    with progress("events", quiet=quiet) as bar:
        source = open_explained(given, replay, engine.ticks)
        events = watched(source, bar, "explaining", source)
        first, second = next(events, None), next(events, None)
        if first is None:
            raise EventError("there is no event to explain by")
        if second is not None:
            return _explain_events(engine, chain((first, second), events), output)
    if isinstance(first, Fault):
        raise EventError(first.reason)
    return _explain_event(engine, first, output)


def _explain_event(engine: Engine, event: Event, output: _Output) -> bool:
    why = engine.explain(_ID, event)
    print_trees(why.trees(), output.console)
    schema = ObservedSchema()
    schema.add(event)
    for query in engine.query_shapes():  # what else the event lacks is in the tree
        for warning in schema.misspellings(query):
            warn(warning)
            output.warnings = (*output.warnings, warning)
    output.write(filter_record(why, event))
    return why.matched


def _explain_events(engine: Engine, events: Iterator[Event | Fault], output: _Output) -> bool:
    """Print how often each part of a filter's condition is true, false and unknown, and how many events match."""
    counts: TruthCounts | None = None
    outside: Counter[str] = Counter()
    examined = matched = 0
    first: str | None = None
    schema = ObservedSchema()
    for event in observed(events, schema, engine):
        if not isinstance(event, Event):
            output.log(event)
            continue
        why = engine.explain(_ID, event)
        assert isinstance(why, EventExplanation)  # noqa: S101 - the subscription is a filter
        examined += 1
        counts = counts or TruthCounts(why.reason)
        counts.add(why.reason)
        outside.update(why.outside)
        if why.matched:
            matched += 1
            first = first or event.id
    if counts is None:
        raise EventError("there is no event to explain by")
    at = "" if first is None else f", first {first}"
    reasons = [
        Branch(StyledText("✗", Style.BAD), f" {reason}  ", StyledText(counted(count, "event"), Style.QUIET))
        for reason, count in outside.items()
    ]
    verdict = Branch(f"it matches {matched:,} of {counted(examined, 'event')}{at}")
    print_trees([_counts_tree(counts), *reasons, verdict], output.console)
    output.warn_of_unseen(engine, schema)
    output.write(
        {
            "kind": "filter",
            "events": examined,
            "matched": matched,
            "first_match": first,
            "condition": counts.record(),
            "outside": dict(outside),
        }
    )
    return bool(matched)


def _explain_sequence(
    engine: Engine, query: Sequence, source: EventFile | None, graph: Path | None, output: _Output
) -> bool:
    """Print a sequence's automaton and, after the events, its instances; return whether one completed."""
    completed: int | None = None
    schema = ObservedSchema()
    if source is not None:
        events = observed(source, schema, engine)
        completed = sum(1 for _ in engine.publish_stream(events, on_error=output.log, batch_size=256))
        completed += len(engine.flush())
    why = engine.explain(_ID)
    assert isinstance(why, SequenceExplanation)  # noqa: S101 - the subscription is a sequence
    print_trees(why.trees(), output.console)
    if graph is not None:
        with opened(graph) as file:
            file.write(why.drawing(title=to_text(query)).encode())
        if not is_standard(graph):
            note(f"drawn in {graph}")
    published = engine.stats().published
    if completed is not None:
        output.console.print(f"completed {counted(completed, 'time')} in {counted(published, 'event')}")
        output.warn_of_unseen(engine, schema)
    output.write(sequence_record(why, completed, published))
    return completed is None or completed > 0


def _explain_view(engine: Engine, source: EventFile, output: _Output) -> bool:
    """Publish all events but the last, and show the change that the last one makes; return whether there is one."""
    last: Event | None = None
    schema = ObservedSchema()
    for event in observed(source, schema, engine):
        if not isinstance(event, Event):
            output.log(event)
            continue
        if last is not None:
            engine.publish_many([last], on_error=output.log)
        last = event
    if last is None:
        raise EventError("there is no event to explain by")
    why = engine.explain(_ID, last)
    assert isinstance(why, ViewExplanation)  # noqa: S101 - the subscription is a view
    published = engine.stats().published
    trees = view_trees(why, before=f"after {counted(published, 'event')}", event="the last event")
    print_trees(trees, output.console)
    output.warn_of_unseen(engine, schema)
    output.write(view_record(why, published))
    return why.matched


def _counts_tree(counts: TruthCounts) -> Branch:
    """Return a condition as a tree: each part with how often it was true, false and unknown."""
    held: list[str | StyledText] = []
    for truth, count in counts.counts.items():
        mark, style = _TRUTHS[truth]
        held += ["  ", StyledText(mark, style), f" {count:,}"]
    return Branch(counts.connective or counts.text, *held, branches=map(_counts_tree, counts.parts))
