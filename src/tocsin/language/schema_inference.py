"""A schema inferred from events, and warnings for queries that no such event can match."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tocsin.language.normal.merge import admitted_kinds
from tocsin.language.normal.predicates import attributes_of
from tocsin.language.parsing.cursor import closest
from tocsin.language.printer import condition_text
from tocsin.model.conditions import Operator, Predicate, leaves
from tocsin.model.event import Event
from tocsin.model.queries import Filter, Query, Sequence, View, conditions_of
from tocsin.model.terms import Attribute, Literal
from tocsin.model.values import Kind, kind_of


class ObservedSchema:
    """The attributes of events by stream, with the kinds of their values."""

    def __init__(self) -> None:
        self._kinds: defaultdict[str | None, defaultdict[str, set[Kind]]] = defaultdict(
            lambda: defaultdict(set)
        )
        self.events = 0

    def add(self, event: Event) -> None:
        """Add the attributes of an event."""
        self.events += 1
        for stream in {event.stream, None}:
            kinds = self._kinds[stream]
            for path, value in event.attributes.items():
                kinds[path].add(kind_of(value))

    def warnings(self, query: Query) -> tuple[str, ...]:
        """Return a warning for each unknown attribute, and for each predicate whose kind no event has."""
        found: dict[str, None] = {}
        for stream, predicate in _predicates(query):
            # If no event names the query's stream, the attributes of all events serve as its schema.
            kinds = self._kinds[stream if stream in self._kinds else None]
            for attribute in sorted(attributes_of(predicate), key=lambda a: a.path):
                if attribute.path not in kinds and predicate.operator is not Operator.MISSING:
                    near = closest(attribute.path, tuple(kinds))
                    hint = f"; did you mean `{near}`?" if near else ""
                    found[f"no event has the attribute `{attribute.path}`{hint}"] = None
            warning = _kind_mismatch(predicate, kinds)
            if warning:
                found[warning] = None
        return tuple(found)


def _kind_mismatch(predicate: Predicate, schema: defaultdict[str, set[Kind]]) -> str | None:
    """Return a warning if the events' attribute never has a kind that the predicate admits."""
    subject = predicate.subject
    if not isinstance(subject, Attribute) or subject.path not in schema or not predicate.operands:
        return None
    if not all(isinstance(operand, Literal) for operand in predicate.operands):
        return None
    observed = schema[subject.path]
    wanted = admitted_kinds(predicate)
    if observed & wanted or not wanted:
        return None
    return (
        f"`{condition_text(predicate)}` never matches: `{subject.path}` is a {' or '.join(sorted(observed))} in the events, "
        f"not a {' or '.join(sorted(wanted))}"
    )


def _predicates(query: Query) -> Iterator[tuple[str | None, Predicate]]:
    """Yield each predicate with the stream of its attributes, where that is known."""
    if isinstance(query, Filter):
        for predicate in leaves(query.condition):
            yield query.stream, predicate
    elif isinstance(query, View):
        names = {table.alias or table.name: table.name for table in query.tables}
        for predicate in (*leaves(query.on), *leaves(query.where)):
            subject = predicate.subject
            alias = subject.alias if isinstance(subject, Attribute) else None
            yield names[alias] if alias in names else query.tables[0].name, predicate
    else:
        yield from _sequence_predicates(query)


def _sequence_predicates(query: Sequence) -> Iterator[tuple[str | None, Predicate]]:
    """Yield the predicates that compare an event of a named stream with constants."""
    streams: dict[str | None, str] = {}
    for step in query.steps:
        if isinstance(step.source, Sequence):
            yield from _sequence_predicates(step.source)
        elif step.alias is not None:
            streams[step.alias] = step.source
        for condition in conditions_of(step):
            for predicate in leaves(condition):
                subject = predicate.subject
                if (
                    isinstance(subject, Attribute)
                    and subject.alias in streams
                    and attributes_of(predicate) == {subject}
                ):
                    yield streams[subject.alias], predicate
