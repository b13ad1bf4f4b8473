"""Explaining why a sequence was or was not completed: its automaton, its state, and the effect of an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from tocsin.language.explanation import EventExplanation, Reason, explain_condition
from tocsin.language.printer import term_text
from tocsin.model import Attribute, Event, Value
from tocsin.model.conditions import TRUE, And, Condition, all_of
from tocsin.model.terms import Elapsed, Parameter, Term
from tocsin.sequences import algebra
from tocsin.sequences.automaton import Automaton, Edge, Node, Test
from tocsin.sequences.drawing import draw
from tocsin.sequences.inspection import Instance, NodeState, SequenceState
from tocsin.sequences.oracle.occurrences import value_of
from tocsin.sequences.shown_times import IN_TICKS, ShownTimes
from tocsin.sequences.substitution import replace_condition_leaves

if TYPE_CHECKING:
    from tocsin.display.trees import Branch

_Computed: TypeAlias = tuple[tuple[algebra.Computed, ...], ...]


class ConditionText(Struct, frozen=True):
    """A condition of an automaton: the whole, the part on the event alone, and the part that needs the instance."""

    whole: str
    static: str | None
    dynamic: str | None


class Effect(Struct, frozen=True):
    """The effect that an event would have on an instance: in words, and the truth of each condition tested.

    `on` makes it the next event; then `again` takes the loop of an iteration, and `onward` the edge to the next step.
    """

    instance: Instance
    text: str
    on: Reason
    again: Reason | None = None
    onward: Reason | None = None

    @property
    def moves(self) -> bool:
        """Tell whether the instance would take an edge."""
        return any(edge is not None and edge.truth is True for edge in (self.again, self.onward))


class NodeExplanation(Struct, frozen=True):
    """A node: its conditions, its instances, and the effects of an event on them."""

    alias: str
    stream: str
    on: ConditionText
    again: ConditionText | None
    onward: ConditionText
    longest: int | None
    state: NodeState | None
    effects: tuple[Effect, ...] = ()


class SequenceExplanation(EventExplanation, frozen=True, kw_only=True):
    """A sequence: how it begins, and its nodes in order; `inner` are sequences in parentheses, by their text.

    `begins` is the first end that it will see, if it has not begun. Given an event, `matched` tells whether the event
    would begin it or move an instance; `reason` is the condition to begin, and `outside` why the event is not seen.
    """

    alias: str
    stream: str
    begin: ConditionText
    nodes: tuple[NodeExplanation, ...]
    automaton: Automaton
    state: SequenceState | None = None
    begins: int | None = None
    inner: tuple[tuple[str, SequenceExplanation], ...] = ()
    times: ShownTimes = IN_TICKS

    @property
    def instances(self) -> int:
        """Return the number of instances at all nodes together."""
        return sum(node.state.instances for node in self.nodes if node.state is not None)

    def drawing(self, *, title: str = "") -> str:
        """Return a drawing of the automaton and its instances, in SVG."""
        return draw(self.automaton, self.state, title=title, times=self.times)

    def trees(self) -> list[Branch]:
        """Return the automaton as a tree, with its instances and the effect of the event, if there is one."""
        from tocsin.language.explanation_tree import outside_lines  # noqa: PLC0415 - to look at it is rare
        from tocsin.sequences.explanation_tree import automaton_tree  # noqa: PLC0415

        return [automaton_tree(self), *outside_lines(self.outside)]

    def _facts(self) -> list[str]:
        from tocsin.display.text import counted  # noqa: PLC0415

        return [counted(len(self.nodes), "node"), counted(self.instances, "instance")]

    def _repr_html_(self) -> str:
        from tocsin.display.html import box, details, head, picture  # noqa: PLC0415
        from tocsin.display.trees import html_of  # noqa: PLC0415

        drawing = picture(self.drawing(), f"the automaton of {self.subscription}")
        tree = details("its conditions and instances", f'<div class="mono">{html_of(self.trees())}</div>')
        return box(head(self.subscription), drawing, tree)


def explain_sequence(
    id_: str,
    automaton: Automaton,
    expression: algebra.Expression,
    state: SequenceState | None,
    *,
    begins: int | None = None,
    event: Event | None = None,
    outside: tuple[str, ...] = (),
    times: ShownTimes = IN_TICKS,
) -> SequenceExplanation:
    """Return an automaton's conditions, its state, and, given an event, the effect that the event would have now."""
    states = (None,) * len(automaton.nodes) if state is None else state.nodes
    inner_states = {} if state is None else dict(state.inner)
    seen = None if outside else event
    begin = _condition_text(automaton.edges[0].test, automaton.alias, times)
    start = _start(automaton, seen)
    nodes = tuple(
        _node(node, edge, computed, node_state, seen, times=times)
        for node, edge, computed, node_state in zip(
            automaton.nodes, automaton.edges[1:], _computed_by_node(expression), states, strict=True
        )
    )
    streams = {stream.name: stream.of for stream in algebra.streams_in(expression)}
    inner = tuple(
        (
            name,
            explain_sequence(id_, one, of, inner_states.get(name), event=event, outside=outside, times=times),
        )
        for name, one in automaton.inner
        if (of := streams.get(name)) is not None
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
        state=state,
        begins=begins,
        inner=inner,
        times=times,
    )


def _node(
    node: Node,
    onward: Edge,
    computed: _Computed,
    state: NodeState | None,
    event: Event | None,
    *,
    times: ShownTimes,
) -> NodeExplanation:
    """Return the explanation of one node, with the effect of `event` on its sample instances."""
    samples = () if state is None or event is None else state.samples
    return NodeExplanation(
        alias=node.alias,
        stream=node.stream,
        on=_condition_text(node.guard.test, node.alias, times),
        again=None if node.rebind is None else _condition_text(node.rebind.test, node.alias, times),
        onward=_condition_text(onward.test, node.alias, times),
        longest=None if isinstance(node.longest, Parameter) else node.longest,
        state=state,
        effects=tuple(
            _effect(node, onward, computed, one, event, times=times) for one in samples if event is not None
        ),
    )


def _condition_text(test: Test, alias: str, times: ShownTimes) -> ConditionText:
    parts = _parts(test.condition)
    static = _parts(test.static)
    bare = [replace_condition_leaves(part, lambda term: _bare(term, alias)) for part in parts]
    dynamic = [part for part, without_alias in zip(parts, bare, strict=True) if without_alias not in static]
    return ConditionText(
        times.condition_text(all_of(parts)),
        times.condition_text(all_of(static)) if static else None,
        times.condition_text(all_of(dynamic)) if dynamic else None,
    )


def _bare(term: Term, alias: str) -> Term:
    return Attribute(term.path) if isinstance(term, Attribute) and term.alias == alias else term


def _parts(condition: Condition) -> list[Condition]:
    if condition == TRUE:
        return []
    return list(condition.conditions) if isinstance(condition, And) else [condition]


def _start(automaton: Automaton, event: Event | None) -> Reason | None:
    if event is None or event.stream != automaton.stream:
        return None
    values = _event_values(event, automaton.alias)
    return _reason(automaton.edges[0].test.condition, values, event.end - event.start + 1)


def _effect(
    node: Node, onward: Edge, computed: _Computed, instance: Instance, event: Event, *, times: ShownTimes
) -> Effect:
    """Return what an event does to one instance, and why."""
    duration = event.end - instance.start + 1
    values = {**dict(instance.values), **_event_values(event, node.alias)}
    on = _reason(node.guard.test.condition, values, duration)
    if event.stream != node.stream:
        return Effect(instance, f"nothing: it waits for `{node.stream}`", on)
    if isinstance(node.longest, int) and duration > node.longest:
        return Effect(instance, f"it ends: after {times.length(duration)} its time is over", on)
    if event.start <= instance.end:
        start, end = times.time(event.start), times.time(instance.end)
        return Effect(instance, f"nothing: the event starts at {start}, not after {end}", on)
    if on.truth is not True:
        return Effect(instance, "nothing: the event is passed over", on)
    forward = _reason(onward.test.condition, _with_computed(computed, values, duration), duration)
    again = None if node.rebind is None else _reason(node.rebind.test.condition, values, duration)
    moves = [("it goes round again", again), ("it goes on", forward)]
    text = " and ".join(words for words, reason in moves if reason is not None and reason.truth is True)
    return Effect(instance, text or "it ends: no edge can be taken", on, again, forward)


def _event_values(event: Event, alias: str) -> dict[Attribute, Value | None]:
    return {Attribute(path, alias): value for path, value in event.attributes.items()}


def _computed_by_node(expression: algebra.Expression) -> list[_Computed]:
    """Return the values that are computed from the event of each node, one set after another."""
    found: list[_Computed] = []
    after: _Computed = ()
    at = expression
    while not isinstance(at, (algebra.Rename, algebra.Stream, algebra.Union)):
        if isinstance(at, algebra.Compute):
            after = (at.values, *after)
        if isinstance(at, (algebra.Next, algebra.Iterate)):
            found.append((at.compute, *after) if isinstance(at, algebra.Iterate) else after)
            after = ()
            at = at.left
        else:
            at = at.of
    return found[::-1]


def _with_computed(
    computed: _Computed, values: Mapping[Attribute, Value | None], duration: int
) -> dict[Attribute, Value | None]:
    """Return values with the computed ones."""
    data = dict(values)
    for values_ in computed:
        before = {name: value for name, value in data.items() if value is not None}
        data |= {Attribute(one.name): value_of(one.term, before, duration) for one in values_}
    return data


def _reason(condition: Condition, values: Mapping[Attribute, Value | None], duration: int) -> Reason:
    """Return each part of a condition with its truth for the values of an instance and an event."""
    known: dict[str, Value] = {"duration": duration}

    def name_leaf(term: Term) -> Term:
        """Return the term as an attribute named by its own text, and note its value."""
        if isinstance(term, Elapsed):
            return Attribute("duration")
        if not isinstance(term, Attribute):
            return term
        path = term_text(term, sequence=True)
        value = values.get(term)
        if value is not None:
            known[path] = value
        return Attribute(path)

    return explain_condition(replace_condition_leaves(condition, name_leaf), known)
