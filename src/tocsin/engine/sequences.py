"""What a sequence means to the engine: how it is made ready, and what its subscriber is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tocsin.model import Event, Notification, Sequence
from tocsin.model.conditions import leaves
from tocsin.model.queries import Next, conditions_of
from tocsin.model.subscription import Witnessed
from tocsin.model.terms import Aggregate, Arithmetic, Negative, Span, SpanUnit, Term
from tocsin.sequences.witnesses import Step, Told


def asks_in_units(query: Sequence) -> bool:
    """Tell whether a sequence asks about lengths of time in minutes, hours and the like, not in ticks."""
    within = () if query.within is None else (query.within,)
    return any(
        isinstance(term, Span) and term.unit is not SpanUnit.TICKS for term in (*within, *_terms(query))
    ) or any(isinstance(step.source, Sequence) and asks_in_units(step.source) for step in query.steps)


def sequence_notification(id_: str, told: Told, start: int, end: int, generation: int) -> Notification:
    """Return what the subscription of a sequence is told: the first and last event of each step, and the values."""
    events = list(_events(told.steps))
    return Notification(
        subscription=id_,
        event_ids=tuple(event.id for event in events),
        events=tuple(events),
        values=dict(told.values) if told.values else None,
        start=start,
        end=end,
        generation=generation,
        witness=tuple(_witnessed(step) for step in told.steps),
    )


def _events(steps: Iterable[Step]) -> Iterator[Event]:
    for step in steps:
        yield step.first
        if step.last is not step.first:
            yield step.last


def _witnessed(step: Step) -> Witnessed:
    chain = None if step.chain is None else tuple(event.id for event in step.chain)
    return Witnessed(step.alias, step.first.id, step.last.id, chain)


def _terms(query: Sequence) -> Iterator[Term]:
    """Return every term of a sequence's own steps, those within terms included."""
    for step in query.steps:
        for condition in conditions_of(step):
            for predicate in leaves(condition):
                for term in (predicate.subject, *predicate.operands):
                    yield from _within(term)
        if not isinstance(step, Next):
            for computation in step.compute:
                yield from _within(computation.term)
    for item in query.select:
        yield from _within(item.term)


def _within(term: Term) -> Iterator[Term]:
    yield term
    if isinstance(term, Arithmetic):
        yield from _within(term.left)
        yield from _within(term.right)
    elif isinstance(term, Negative):
        yield from _within(term.term)
    elif isinstance(term, Aggregate) and term.argument is not None:
        yield from _within(term.argument)
