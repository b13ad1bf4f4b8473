"""What a filter means to the engine: its normal form, the events it applies to, and what it tells."""

from __future__ import annotations

from typing import Protocol

from tocsin.language import Cnf, Dnf, to_dnf, to_normal
from tocsin.language.explanation import EventExplanation, explain_condition
from tocsin.language.semantics import condition_truth, value_of
from tocsin.model import (
    Attribute,
    Event,
    Filter,
    Notification,
    Operator,
    Predicate,
    Query,
    Sequence,
    Subscription,
    literal,
)
from tocsin.model.conditions import Conjunction
from tocsin.model.errors import NormalFormError, SubscriptionError
from tocsin.model.event import STREAM, is_deletion, matchable


class NormalForm(Protocol):
    """How a filter is normalised: `normal_form` or `smaller_form`, as the matcher can hold it."""

    def __call__(self, query: Filter, id_: str, normal: Dnf | Cnf | None = None) -> Dnf | Cnf:
        """Return a normal form of the filter with this id; `normal` is one of its condition, if known."""


def only_filters(query: Query, id_: str) -> Filter:
    """Return `query` if it is a filter; raise `SubscriptionError` for what no index of filters can hold."""
    if isinstance(query, Filter):
        return query
    shape = "sequence" if isinstance(query, Sequence) else "view"
    raise SubscriptionError(
        f"the text is right, but this is a {shape}; Spark and saved indexes match filters only so far, "
        f"`tocsin.Engine` runs {shape}s too",
        id_,
    )


def normal_form(query: Filter, id_: str, normal: Dnf | Cnf | None = None) -> Dnf:
    """Return the filter's disjunctive normal form, its stream included; `normal` is one of its condition, if known."""
    try:
        form = normal if isinstance(normal, Dnf) else to_dnf(query.condition)
    except NormalFormError as fault:
        raise SubscriptionError(str(fault), id_) from fault
    stream = _stream_of(query)
    return (
        Dnf(tuple((*stream, *conjunction) for conjunction in form.conjunctions), form.never)
        if stream
        else form
    )


def smaller_form(query: Filter, id_: str, normal: Dnf | Cnf | None = None) -> Dnf | Cnf:
    """Return the filter's smaller normal form, its stream included; `normal` is one of its condition, if known."""
    try:
        form = normal if isinstance(normal, Cnf) else to_normal(query.condition, dnf=normal)
    except NormalFormError as fault:
        raise SubscriptionError(str(fault), id_) from fault
    if isinstance(form, Dnf):
        return normal_form(query, id_, form)
    return Cnf((*((predicate,) for predicate in _stream_of(query)), *form.clauses), form.never)


def _stream_of(query: Filter) -> Conjunction:
    """Return the predicate that an event is of the filter's stream; none if it looks at every stream."""
    if query.stream is None:
        return ()
    return (Predicate(Attribute(STREAM), Operator.EQ, (literal(query.stream),)),)


def outside(subscription: Subscription, event: Event) -> tuple[str, ...]:
    """Return what keeps the event away from the subscription's condition: its stream, or its time."""
    query = subscription.query
    reasons = []
    if isinstance(query, Filter) and query.stream is not None and query.stream != event.stream:
        of = f"of stream `{event.stream}`" if event.stream is not None else "of no stream"
        reasons.append(f"it looks at stream `{query.stream}`, the event is {of}")
    reasons += subscription.outside_validity(event)
    if is_deletion(event):
        reasons.append("the event is a deletion, which reaches no filter")
    return tuple(reasons)


def applies(subscription: Subscription, event: Event) -> bool:
    """Tell whether the subscription is to be told of the event."""
    return not outside(subscription, event) and _condition_holds(subscription, event)


def explain_filter(subscription: Subscription, event: Event) -> EventExplanation:
    """Return why a subscription would be notified of an event, or would not."""
    query = only_filters(subscription.query, subscription.id)
    apart = outside(subscription, event)
    reason = explain_condition(query.condition, matchable(event).attributes)
    return EventExplanation(subscription.id, reason.truth is True and not apart, reason, apart)


def notification(id_: str, query: Filter, event: Event, generation: int) -> Notification:
    """Return what the subscription is told of the event."""
    attributes = matchable(event).attributes if query.select else {}
    return Notification(
        subscription=id_,
        event_ids=(event.id,),
        events=(event,),
        values={item.name: value_of(item.term, attributes) for item in query.select}
        if query.select
        else None,
        start=event.start,
        end=event.end,
        generation=generation,
    )


def _condition_holds(subscription: Subscription, event: Event) -> bool:
    query = only_filters(subscription.query, subscription.id)
    return condition_truth(query.condition, matchable(event).attributes) is True
