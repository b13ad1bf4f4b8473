"""Putting an automaton together, from its end to its beginning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tocsin.model.conditions import TRUE, Condition, Operator
from tocsin.model.terms import Attribute, Parameter
from tocsin.sequences.algebra import Expression
from tocsin.sequences.automaton import Automaton, Edge, Guard, Node, Output, Part, Test
from tocsin.sequences.compiling.chains import Chain, Link, both, chain_of
from tocsin.sequences.compiling.parameters import needs_rows
from tocsin.sequences.compiling.pushing import bound, push
from tocsin.sequences.compiling.questions import Atom, Question
from tocsin.sequences.compiling.splitting import split
from tocsin.sequences.compiling.truths import checks_of
from tocsin.sequences.compiling.values import (
    Checks,
    Held,
    Key,
    Mark,
    Marked,
    Read,
    Truth,
    Value,
    parts_of,
    read_item,
)
from tocsin.sequences.compiling.writing import assignment, examination
from tocsin.sequences.contents import telling_of
from tocsin.sequences.programs import Program


def compile_expression(
    expression: Expression,
    *,
    index_edges: bool = True,
    index_filters: bool = True,
    full: bool = False,
    publish: str | None = None,
) -> Automaton:
    """Return the automaton of an expression, or raise `SubscriptionError` where it has none.

    Without `index_edges` or `index_filters`, the conditions of edges, or of guards, are wholly in their programs. With
    `full`, every step's chain of events is held as well as its first and last. `publish` is the stream it feeds.
    """
    chain = chain_of(expression)
    links = chain.links
    push(links)
    longest = bound(links)
    output, wanted = _output(chain, telling_of(expression).names, full=full)
    nodes: list[Node] = []
    edges: list[Edge] = []
    for place in range(len(links) - 1, 0, -1):
        link = links[place]
        asked = _asked(link, edges=index_edges, filters=index_filters)
        keys = _keys(link, asked, wanted)
        slots = {key: slot for slot, key in enumerate(keys)}
        edges.append(Edge(asked.ending.test(slots), assignment(wanted, slots)))
        nodes.append(_node(link, asked, slots, longest[place - 1]))
        assert link.before is not None  # noqa: S101 - there is a step before
        wanted = [link.before.of(key) for key in keys]
    first = _asked(links[0], edges=index_edges, filters=index_filters)
    edges.append(Edge(first.ending.test({}), assignment(wanted, {})))
    inner = {
        link.stream.name: compile_expression(
            link.stream.of,
            index_edges=index_edges,
            index_filters=index_filters,
            publish=link.stream.name,
        )
        for link in links
        if link.stream.of is not None
    }
    automaton = Automaton(
        links[0].stream.name,
        links[0].alias,
        tuple(reversed(nodes)),
        tuple(reversed(edges)),
        output,
        publish,
        tuple(inner.items()),
    )
    parenthesised = [link.stream.of for link in links if link.stream.of is not None]
    return replace(automaton, by_row=needs_rows(automaton, parenthesised))


class _Asked(Struct, frozen=True):
    """A test before it is known where things are held."""

    condition: Condition
    static: Condition
    checks: tuple[Checks, ...]
    all_checks: tuple[Checks, ...]  # those of the static part among them

    def test(self, slots: Mapping[Key, int]) -> Test:
        return Test(self.condition, self.static, examination(self.checks, slots), self._whole(slots))

    def _whole(self, slots: Mapping[Key, int]) -> Program | None:
        if self.static == TRUE:
            return None
        program = examination(self.all_checks, slots)
        return program if all(isinstance(column, str) for column in program.columns) else None


class _Step(Struct, frozen=True):
    """All that is asked at one step: of the next event, of an iteration, and in the end."""

    guard: _Asked
    going: _Asked
    ending: _Asked
    equal: tuple[tuple[str, Attribute], ...]  # an attribute of the event, and what it equals
    rest: tuple[Checks, ...]


def _asked(link: Link, *, edges: bool, filters: bool) -> _Step:
    guard, questions = _part(link.on, link.guard, indexed=filters)
    going, _ = _part(link.while_, link.going, indexed=edges)
    ending, _ = _part(both(link.while_, link.selected), [*link.going, *link.where], indexed=edges)
    equal = [(question, found) for question in questions if (found := _equality(question)) is not None]
    keyed = [question for question, _ in equal]
    rest = tuple(checks_of(question) for question in questions if question not in keyed)
    return _Step(guard, going, ending, tuple(found for _, found in equal), rest)


def _part(condition: Condition, questions: list[Question], *, indexed: bool) -> tuple[_Asked, list[Question]]:
    static, dynamic = split(questions) if indexed else (TRUE, questions)
    checks, whole = (tuple(checks_of(question) for question in asked) for asked in (dynamic, questions))
    return _Asked(condition, static, checks, whole), dynamic


def _equality(question: Question) -> tuple[str, Attribute] | None:
    """Return the attribute of the event, and what is held, that a question asks to be equal, if it does."""
    if not isinstance(question, Atom) or question.operator is not Operator.EQ:
        return None
    for one, other in ((question.subject, question.operands[0]), (question.operands[0], question.subject)):
        if isinstance(one, Read) and isinstance(one.column, str) and isinstance(other, Held):
            assert isinstance(other.key, Attribute)  # noqa: S101 - a question names nothing else
            return one.column, other.key
    return None


def _keys(link: Link, asked: _Step, wanted: Sequence[Value]) -> list[Key]:
    """Return what an instance has to hold while it waits at a step: what is asked there, and what comes after."""
    waiting = list(_held((*asked.guard.checks, *asked.going.checks, *asked.ending.checks, *wanted)))
    found: dict[Key, None] = {}
    while waiting:
        key = waiting.pop()
        if key not in found:
            found[key] = None
            if link.again is not None:
                waiting += _held((link.again.of(key),))
    return sorted(found, key=_order)


def _held(values: Iterable[Value | Checks]) -> Iterator[Key]:
    for value in values:
        for part in parts_of(value):
            if isinstance(part, Held):
                yield part.key


def _order(key: Key) -> tuple[int, str, str, str]:
    """Equal nodes hold equal things in one order, whatever asked for them: named values first."""
    if isinstance(key, Attribute):
        return (0, key.alias or "", key.path, "")
    if isinstance(key, Truth):
        return (1, key.of.alias or "", key.of.path, repr((key.operator, key.operands)))
    return (2, key.alias, str(int(key.mark)), "")


def _node(link: Link, asked: _Step, slots: Mapping[Key, int], longest: int | Parameter | None) -> Node:
    rebind = None
    test = asked.guard.test(slots)
    if link.again is not None:
        rebind = Edge(asked.going.test(slots), assignment([link.again.of(key) for key in slots], slots))
    return Node(
        link.stream.name,
        link.alias,
        Guard(
            test,
            tuple((path, slots[attribute]) for path, attribute in asked.equal),
            examination(asked.rest, slots) if asked.equal else test.program,
        ),
        tuple(key if isinstance(key, Attribute) else None for key in slots),
        longest,
        rebind,
    )


def _output(chain: Chain, names: tuple[str, ...], *, full: bool) -> tuple[Output, list[Value]]:
    """Return what is told in the end, values by these names among it, and the value of each of its slots."""
    after = chain.links[-1].after
    if chain.selected is None:
        values = [after.value(Attribute(name)) for name in names]
    else:
        values = [read_item(computed.term, after.value) for computed in chain.selected]
    told = tuple((name, place) for place, name in enumerate(names))
    parts: list[Part] = []
    for link in chain.links:
        marks = [Mark.FIRST] * (link.again is not None) + [Mark.LAST] + [Mark.CHAIN] * full
        places = {mark: len(values) + place for place, mark in enumerate(marks)}
        values += [after.of(Marked(link.alias, mark)) for mark in marks]
        last = places[Mark.LAST]
        parts.append(
            Part(link.alias, link.stream.name, places.get(Mark.FIRST, last), last, places.get(Mark.CHAIN))
        )
    return Output(len(values), tuple(parts), told, chain.selected is not None), values
