"""What events have been seen to hold, and which questions they can never answer."""

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
    """The attributes of events, by stream, with the kinds of value they had."""

    def __init__(self) -> None:
        self._kinds: defaultdict[str | None, defaultdict[str, set[Kind]]] = defaultdict(
            lambda: defaultdict(set)
        )
        self.events = 0

    def add(self, event: Event) -> None:
        """Take note of an event."""
        self.events += 1
        for stream in {event.stream, None}:
            kinds = self._kinds[stream]
            for path, value in event.attributes.items():
                kinds[path].add(kind_of(value))

    def warnings(self, query: Query) -> tuple[str, ...]:
        """Return what of `query` the events seen so far cannot answer: unknown attributes, kinds that never match."""
        found: dict[str, None] = {}
        for stream, predicate in _predicates(query):
            # A stream that none of the events was said to be of tells nothing; all of them together do.
            kinds = self._kinds[stream if stream in self._kinds else None]
            for attribute in sorted(attributes_of(predicate), key=lambda a: a.path):
                if attribute.path not in kinds and predicate.operator is not Operator.MISSING:
                    near = closest(attribute.path, tuple(kinds))
                    hint = f"; did you mean `{near}`?" if near else ""
                    found[f"no event has an attribute `{attribute.path}`{hint}"] = None
            warning = _never_of_kind(predicate, kinds)
            if warning:
                found[warning] = None
        return tuple(found)


def _never_of_kind(predicate: Predicate, seen: defaultdict[str, set[Kind]]) -> str | None:
    subject = predicate.subject
    if not isinstance(subject, Attribute) or subject.path not in seen or not predicate.operands:
        return None
    if not all(isinstance(operand, Literal) for operand in predicate.operands):
        return None
    had = seen[subject.path]
    wanted = admitted_kinds(predicate)
    if had & wanted or not wanted:
        return None
    return (
        f"`{condition_text(predicate)}` never holds: `{subject.path}` is a {' or '.join(sorted(had))} in the events, "
        f"not a {' or '.join(sorted(wanted))}"
    )


def _predicates(query: Query) -> Iterator[tuple[str | None, Predicate]]:
    """Return each predicate with the stream that its attributes are of, where that is known."""
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
        yield from _of_a_sequence(query)


def _of_a_sequence(query: Sequence) -> Iterator[tuple[str | None, Predicate]]:
    """Return the predicates that compare an event of a named stream with constants; others depend on more."""
    streams: dict[str | None, str] = {}
    for step in query.steps:
        if isinstance(step.source, Sequence):
            yield from _of_a_sequence(step.source)
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
