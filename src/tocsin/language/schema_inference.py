"""A schema inferred from events, and warnings for queries that no such event can match."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Final

from tocsin.language.normal.merge import admitted_kinds
from tocsin.language.normal.predicates import attributes_of
from tocsin.language.parsing.cursor import closest
from tocsin.language.printer import condition_text, name_text
from tocsin.model.conditions import Operator, Predicate, leaves
from tocsin.model.event import Event
from tocsin.model.queries import Filter, Query, Sequence, View, conditions_of, sequences_in
from tocsin.model.terms import Attribute, Literal, subterms
from tocsin.model.values import Kind, kind_of

_FEW: Final = 5  # names that a message lists
_DID_YOU_MEAN: Final = "did you mean"
_IN_QUOTES: Final = "a text is written in single quotes"
_MOST_KNOWN: Final = 10_000  # combinations of names that need not be added again


class ObservedSchema:
    """The attributes of events by stream, with the kinds of their values."""

    def __init__(self) -> None:
        self._kinds: defaultdict[str | None, defaultdict[str, set[Kind]]] = defaultdict(
            lambda: defaultdict(set)
        )
        self.events = 0
        self._published: set[str] = set()
        self._known: set[tuple[str | None, tuple[str, ...]]] = set()

    def add_published(self, queries: Iterable[Query]) -> None:
        """Add the streams that sequences publish; nothing is known of their attributes."""
        self._published.update(
            query.publish for query in queries if isinstance(query, Sequence) and query.publish is not None
        )

    @property
    def streams(self) -> frozenset[str]:
        """Return the streams of the events."""
        return frozenset(stream for stream in self._kinds if stream is not None)

    def add_names(self, stream: str | None, paths: Iterable[str], count: int = 1) -> None:
        """Add the attributes of events whose values are not looked at."""
        self.events += count
        names = stream, tuple(paths)
        if names in self._known:
            return
        if len(self._known) < _MOST_KNOWN:
            self._known.add(names)
        for one in {stream, None}:
            kinds = self._kinds[one]
            for path in names[1]:
                kinds[path]

    def add(self, event: Event) -> None:
        """Add the attributes of an event."""
        self.events += 1
        for stream in {event.stream, None}:
            kinds = self._kinds[stream]
            for path, value in event.attributes.items():
                kinds[path].add(kind_of(value))

    def add_kinds(self, stream: str | None, path: str, kinds: Iterable[Kind]) -> Set[Kind]:
        """Add kinds of values that an attribute of a stream's events has, and return all that it has had."""
        for one in {stream, None}:
            self._kinds[one][path].update(kinds)
        return self._kinds[stream][path]

    def warnings(self, query: Query) -> tuple[str, ...]:
        """Return a warning for each unknown attribute, and for each predicate whose kind no event has."""
        if not self.events:
            return ()
        found: dict[str, None] = dict.fromkeys(self._unseen_streams(query))
        for stream, attribute in _selected(query):
            if stream in self._published:
                continue
            kinds = self._kinds[stream if stream in self._kinds else None]
            if attribute.path not in kinds:
                found[_no_attribute(attribute.path, kinds)] = None
        for stream, predicate in _predicates(query):
            if stream in self._published:
                continue
            # If no event names the query's stream, the attributes of all events serve as its schema.
            kinds = self._kinds[stream if stream in self._kinds else None]
            for attribute in sorted(attributes_of(predicate), key=lambda a: a.path):
                if attribute.path not in kinds and predicate.operator is not Operator.MISSING:
                    text = _no_attribute(attribute.path, kinds)
                    found[text + _quoted_hint(attribute, predicate, text, kinds)] = None
            warning = _kind_mismatch(predicate, kinds)
            if warning:
                found[warning] = None
        return tuple(found)

    def misspellings(self, query: Query) -> tuple[str, ...]:
        """Return the warnings for names of a query that are close to one which the events have, or that may be texts."""
        hints = (_DID_YOU_MEAN, _IN_QUOTES)
        return tuple(warning for warning in self.warnings(query) if any(hint in warning for hint in hints))

    def _unseen_streams(self, query: Query) -> Iterator[str]:
        """Yield a warning for each stream or table that a query reads and that no event was of."""
        for stream in sorted(streams_of(query) - self.streams - self._published):
            near = closest(stream, tuple(self.streams))
            if near:
                hint = f"{_DID_YOU_MEAN} `{near}`?"
            elif self.streams:
                hint = f"they are of {', '.join(f'`{name}`' for name in sorted(self.streams)[:_FEW])}"
            else:
                hint = "they are of no stream"
            yield f"no event was of stream `{stream}`; {hint}"


def streams_of(query: Query) -> frozenset[str]:
    """Return the streams and tables that a query reads, without those that a sequence in it publishes."""
    if isinstance(query, Filter):
        return frozenset(() if query.stream is None else (query.stream,))
    if isinstance(query, View):
        return frozenset(table.name for table in query.tables)
    sources = (step.source for one in sequences_in(query) for step in one.steps)
    return frozenset(source for source in sources if isinstance(source, str))


def _no_attribute(path: str, kinds: Iterable[str]) -> str:
    known = tuple(kinds)
    near = closest(path, known) or next((one for one in known if _is_within(path, one)), None)
    spaced = next((one for one in known if one != path and one.strip() == path.strip()), None)
    meant = spaced or near
    if meant is None:
        return f"no event has the attribute `{path}`"
    written = name_text(meant)
    quotes = ", in double quotes" if written != meant else ""
    return f"no event has the attribute `{path}`; {_DID_YOU_MEAN} `{written}`{quotes}?"


def _is_within(path: str, known: str) -> bool:
    """Tell whether an attribute is one of a nested object that is named without the object, or the reverse."""
    return known.lower().endswith(f".{path.lower()}") or path.lower().endswith(f".{known.lower()}")


def _quoted_hint(
    attribute: Attribute, predicate: Predicate, text: str, kinds: Mapping[str, Set[Kind]]
) -> str:
    """Return how a text is written, if a name that no event has stands where one may be meant: `origin = JFK`."""
    subject = predicate.subject
    if _DID_YOU_MEAN in text or attribute not in predicate.operands or not isinstance(subject, Attribute):
        return ""
    known = kinds.get(subject.path, frozenset())
    return f"; {_IN_QUOTES}: '{attribute.path}'" if Kind.STRING in known else ""


def compared_kinds(queries: Iterable[Query]) -> dict[str, set[frozenset[Kind]]]:
    """Return the attributes whose values queries compare, each with the kinds that its predicates admit."""
    admitted: dict[str, set[frozenset[Kind]]] = {}
    for query in queries:
        for _, predicate in _predicates(query):
            if isinstance(predicate.subject, Attribute):
                admitted.setdefault(predicate.subject.path, set()).update(_admitted(predicate))
    return admitted


def _admitted(predicate: Predicate) -> tuple[frozenset[Kind], ...]:
    """Return the kinds that can satisfy a predicate, in a tuple that is empty if all or none can."""
    if not predicate.operands or not all(isinstance(operand, Literal) for operand in predicate.operands):
        return ()
    kinds = admitted_kinds(predicate)
    return (kinds,) if kinds else ()


def _selected(query: Query) -> Iterator[tuple[str | None, Attribute]]:
    """Yield the attributes that a filter or view selects, with their streams."""
    if isinstance(query, Sequence):
        return
    names: dict[str | None, str | None] = {None: query.stream} if isinstance(query, Filter) else {}
    if isinstance(query, View):
        names = {table.alias or table.name: table.name for table in query.tables}
        if len(query.tables) == 1:
            names[None] = query.tables[0].name
    for item in query.select:
        for term in subterms(item.term):
            if isinstance(term, Attribute) and term.alias in names:
                yield names[term.alias], term


def _kind_mismatch(predicate: Predicate, schema: defaultdict[str, set[Kind]]) -> str | None:
    """Return a warning if the events' attribute never has a kind that the predicate admits."""
    subject = predicate.subject
    if not isinstance(subject, Attribute) or subject.path not in schema:
        return None
    observed = schema[subject.path]
    if not observed:  # the values were not looked at
        return None
    wanted = frozenset[Kind]().union(*_admitted(predicate))
    if observed & wanted or not wanted:
        return None
    never = f"`{condition_text(predicate)}` never matches: `{subject.path}`"
    if observed == {Kind.OPAQUE}:
        return f"{never} is an array or another value that cannot be compared in the events"
    shown = " or ".join(sorted(observed - {Kind.OPAQUE}))
    return f"{never} is a {shown} in the events, not a {' or '.join(sorted(wanted))}"


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
