"""Why a sequence was or was not completed: its automaton, where it stands, and what an event would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from tocsin.language.explanation import EventExplanation, Reason, explain_condition
from tocsin.language.printer import condition_text, term_text
from tocsin.model import Attribute, Event, Value
from tocsin.model.conditions import TRUE, And, Condition, all_of
from tocsin.model.terms import Elapsed, Parameter, Term
from tocsin.sequences.algebra import (
    Compute,
    Computed,
    Expression,
    Iterate,
    Next,
    Rename,
    Stream,
    Union,
)
from tocsin.sequences.automaton import Automaton, Edge, Node, Test
from tocsin.sequences.contents import streams_in
from tocsin.sequences.drawing import draw
from tocsin.sequences.inspection import Instance, NodeState, SequenceState
from tocsin.sequences.oracle.evaluation import value_of
from tocsin.sequences.substitution import in_condition

_Computing: TypeAlias = tuple[tuple[Computed, ...], ...]


class TestText(Struct, frozen=True):
    """A condition of an automaton: the whole, what is asked of the event alone, and what of the instance with it."""

    whole: str
    static: str | None
    dynamic: str | None


class Effect(Struct, frozen=True):
    """What an event would do to an instance: `told` in words, and each condition it comes to, with its truth.

    `on` makes it the next event; if so, `again` takes the loop of an iteration, and `onward` the edge to what follows.
    """

    instance: Instance
    told: str
    on: Reason
    again: Reason | None = None
    onward: Reason | None = None

    @property
    def moves(self) -> bool:
        """Tell whether the instance would go on, round again or to what follows."""
        return any(way is not None and way.truth is True for way in (self.again, self.onward))


class NodeExplanation(Struct, frozen=True):
    """A node: what it waits for, the ways on from there, what waits there, and what an event would do to that."""

    alias: str
    stream: str
    on: TestText
    again: TestText | None
    onward: TestText
    longest: int | None
    waiting: NodeState | None
    effects: tuple[Effect, ...] = ()


class SequenceExplanation(EventExplanation, frozen=True, kw_only=True):
    """A sequence: how it begins, and its nodes in order; `inner` are sequences in parentheses, by their text.

    `begins` is the first end that it will see, if it has not begun. Given an event, `matched` tells whether that would
    begin it, or move what waits; `reason` is how it would begin with it, and `outside` what keeps the event away.
    """

    alias: str
    stream: str
    begin: TestText
    nodes: tuple[NodeExplanation, ...]
    automaton: Automaton
    standing: SequenceState | None = None
    begins: int | None = None
    inner: tuple[tuple[str, SequenceExplanation], ...] = ()

    @property
    def instances(self) -> int:
        """Return how many instances wait, at all nodes together."""
        return sum(node.waiting.instances for node in self.nodes if node.waiting is not None)

    def drawing(self, *, title: str = "") -> str:
        """Return the automaton and what stands at its nodes as a drawing, in SVG."""
        return draw(self.automaton, self.standing, title=title)


def explain_sequence(
    id_: str,
    automaton: Automaton,
    expression: Expression,
    standing: SequenceState | None,
    *,
    begins: int | None = None,
    event: Event | None = None,
    outside: tuple[str, ...] = (),
) -> SequenceExplanation:
    """Return an automaton's conditions, where it stands, and, given an event, what that would do now."""
    waiting = (None,) * len(automaton.nodes) if standing is None else standing.nodes
    within = {} if standing is None else dict(standing.inner)
    seen = None if outside else event
    begin = _asked(automaton.edges[0].test, automaton.alias)
    start = _start(automaton, seen)
    computing = _computing(expression)
    nodes = tuple(
        _node(node, automaton.edges[place + 1], computing[place], waiting[place], seen)
        for place, node in enumerate(automaton.nodes)
    )
    inner = tuple(
        (name, explain_sequence(id_, one, of, within.get(name), event=event, outside=outside))
        for name, one in automaton.inner
        for of in _inner(expression, name)
    )
    moved = any(effect.moves for node in nodes for effect in node.effects)
    return SequenceExplanation(
        subscription=id_,
        matched=(start is not None and start.truth is True) or moved or any(one.matched for _, one in inner),
        reason=start or Reason(begin.whole, None),
        outside=outside,
        alias=automaton.alias,
        stream=automaton.stream,
        begin=begin,
        nodes=nodes,
        automaton=automaton,
        standing=standing,
        begins=begins,
        inner=inner,
    )


def _node(
    node: Node, onward: Edge, computing: _Computing, waiting: NodeState | None, event: Event | None
) -> NodeExplanation:
    samples = () if waiting is None else waiting.samples
    return NodeExplanation(
        alias=node.alias,
        stream=node.stream,
        on=_asked(node.guard.test, node.alias),
        again=None if node.rebind is None else _asked(node.rebind.test, node.alias),
        onward=_asked(onward.test, node.alias),
        longest=None if isinstance(node.longest, Parameter) else node.longest,
        waiting=waiting,
        effects=()
        if event is None
        else tuple(_effect(node, onward, computing, one, event) for one in samples),
    )


def _asked(test: Test, alias: str) -> TestText:
    parts = _parts(test.condition)
    static = _parts(test.static)
    dynamic = [part for part in parts if not any(_is_about_event(part, alias, one) for one in static)]
    return TestText(_text(parts), _text(static) if static else None, _text(dynamic) if dynamic else None)


def _is_about_event(condition: Condition, alias: str, static: Condition) -> bool:
    """Tell whether a condition about the event of this alias is what a matcher holds of it."""
    return in_condition(condition, lambda term: _bare(term, alias)) == static


def _bare(term: Term, alias: str) -> Term:
    return Attribute(term.path) if isinstance(term, Attribute) and term.alias == alias else term


def _parts(condition: Condition) -> list[Condition]:
    if condition == TRUE:
        return []
    return list(condition.conditions) if isinstance(condition, And) else [condition]


def _text(parts: list[Condition]) -> str:
    return condition_text(all_of(parts), sequence=True)


def _start(automaton: Automaton, event: Event | None) -> Reason | None:
    if event is None or event.stream != automaton.stream:
        return None
    values = _of_event(event, automaton.alias)
    return _reason(automaton.edges[0].test.condition, values, event.end - event.start + 1)


def _effect(node: Node, onward: Edge, computing: _Computing, instance: Instance, event: Event) -> Effect:
    duration = event.end - instance.start + 1
    values = {**dict(instance.values), **_of_event(event, node.alias)}
    on = _reason(node.guard.test.condition, values, duration)
    if event.stream != node.stream:
        return Effect(instance, f"nothing: it waits for `{node.stream}`", on)
    if isinstance(node.longest, int) and duration > node.longest:
        return Effect(instance, f"it ends: after {duration:,} ticks its time is over", on)
    if event.start <= instance.end:
        return Effect(instance, f"nothing: the event starts at {event.start}, not after {instance.end}", on)
    if on.truth is not True:
        return Effect(instance, "nothing: the event is passed over", on)
    forward = _reason(onward.test.condition, _computed(computing, values, duration), duration)
    again = None if node.rebind is None else _reason(node.rebind.test.condition, values, duration)
    moves = [("it goes round again", again), ("it goes on", forward)]
    told = " and ".join(words for words, reason in moves if reason is not None and reason.truth is True)
    return Effect(instance, told or "it ends: no edge can be taken", on, again, forward)


def _of_event(event: Event, alias: str) -> dict[Attribute, Value | None]:
    return {Attribute(path, alias): value for path, value in event.attributes.items()}


def _computing(expression: Expression) -> list[_Computing]:
    """Return, for each node, what is computed of the event that it waits for, one set of values after another."""
    found: list[_Computing] = []
    after: _Computing = ()
    at = expression
    while not isinstance(at, (Rename, Stream, Union)):
        if isinstance(at, Compute):
            after = (at.values, *after)
        if isinstance(at, (Next, Iterate)):
            found.append((at.compute, *after) if isinstance(at, Iterate) else after)
            after = ()
            at = at.left
        else:
            at = at.of
    return found[::-1]


def _computed(
    computing: _Computing, values: Mapping[Attribute, Value | None], duration: int
) -> dict[Attribute, Value | None]:
    """Return values with those that are computed of them."""
    data = dict(values)
    for computed in computing:
        before = {name: value for name, value in data.items() if value is not None}
        data |= {Attribute(one.name): value_of(one.term, before, duration) for one in computed}
    return data


def _inner(expression: Expression, name: str) -> list[Expression]:
    """Return the sequence in parentheses that has this name, as a list of one."""
    of = {stream.name: stream.of for stream in streams_in(expression)}.get(name)
    return [] if of is None else [of]


def _reason(condition: Condition, values: Mapping[Attribute, Value | None], duration: int) -> Reason:
    """Return each part of a condition with its truth over what an instance holds and an event brings."""
    known: dict[str, Value] = {"duration": duration}

    def flat(term: Term) -> Term:
        if isinstance(term, Elapsed):
            return Attribute("duration")
        if not isinstance(term, Attribute):
            return term
        path = term_text(term, sequence=True)
        value = values.get(term)
        if value is not None:
            known[path] = value
        return Attribute(path)

    return explain_condition(in_condition(condition, flat), known)
