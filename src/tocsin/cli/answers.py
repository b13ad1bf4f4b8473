"""How a view stands, at the terminal: its answer, and what the last of some events changes."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.markup import escape

from tocsin.cli.reasons import reason_tree
from tocsin.cli.terminal import FaultLog, counted, shown, shown_answer, warn
from tocsin.engine import Engine, ViewExplanation
from tocsin.formats import EventFile, Fault
from tocsin.model import Event
from tocsin.model.errors import EventError


def explain_view(engine: Engine, text: str, source: EventFile, log: FaultLog) -> None:
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
