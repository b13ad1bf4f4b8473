"""A plain interpreter of automata: no merging, no indexes, one instruction after another.

It is written from what `programs` and `automaton` say, so that kernels have something to be checked against besides the
algebra.
"""

from __future__ import annotations

import math
import operator as python
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import numpy as np
from msgspec import Struct, field

from tocsin.language.semantics import condition_truth, truth
from tocsin.language.template.binding import Bindings, bind_condition
from tocsin.language.template.columns import Column as Rows
from tocsin.language.template.template import bindings_at
from tocsin.matching import IdArray
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event
from tocsin.model.conditions import Condition
from tocsin.model.terms import AggregateFunction, ArithmeticOperator, Literal, Parameter
from tocsin.model.values import Value, kind_of
from tocsin.sequences._kernels.instructions import FAIL, MODE_BITS, Do, Mode
from tocsin.sequences.arithmetic import accumulate, combine
from tocsin.sequences.automaton import Automaton, Edge, Node, Output, Test
from tocsin.sequences.binding import bind_expression, bound_names
from tocsin.sequences.compiling.compiler import CompiledSequence, compile_expression, parameters_in_programs
from tocsin.sequences.matches import SequenceMatch, SequenceMatches, Step, published_event
from tocsin.sequences.modes import MODES, Optimisations
from tocsin.sequences.programs import Column, Program

Slot = Value | Event | tuple[Event, ...] | None

_COMPUTED: Final[dict[Do, Callable[[Any, Any], Slot]]] = {
    Do.ADD: lambda b, c: combine(ArithmeticOperator.ADD, b, c),
    Do.SUBTRACT: lambda b, c: combine(ArithmeticOperator.SUBTRACT, b, c),
    Do.MULTIPLY: lambda b, c: combine(ArithmeticOperator.MULTIPLY, b, c),
    Do.DIVIDE: lambda b, c: combine(ArithmeticOperator.DIVIDE, b, c),
    Do.SUM: lambda b, c: accumulate(AggregateFunction.SUM, b, c),
    Do.LEAST: lambda b, c: accumulate(AggregateFunction.MIN, b, c),
    Do.GREATEST: lambda b, c: accumulate(AggregateFunction.MAX, b, c),
    Do.COUNT: lambda b, c: accumulate(AggregateFunction.COUNT, b, c),
    Do.FIRST: lambda b, c: c if b is None else b,
}
_COMPARED: Final[dict[Do, Callable[[Any, Any], bool]]] = {
    Do.EQ: python.eq,
    Do.NE: python.ne,
    Do.LT: python.lt,
    Do.LE: python.le,
    Do.GT: python.gt,
    Do.GE: python.ge,
}
_OF_TEXTS: Final[dict[Do, Callable[[str, str], bool]]] = {
    Do.CONTAINS: lambda b, c: c in b,
    Do.NOT_CONTAINS: lambda b, c: c not in b,
    Do.STARTS_WITH: str.startswith,
    Do.NOT_STARTS_WITH: lambda b, c: not b.startswith(c),
    Do.ENDS_WITH: str.endswith,
    Do.NOT_ENDS_WITH: lambda b, c: not b.endswith(c),
}


class Instance(Struct):
    """Something that waits at a node; `began` is the end of its first event."""

    slots: list[Slot]
    start: int
    end: int
    began: int
    touched: bool = False


class Found(Struct):
    """An output: what its slots hold, and the times."""

    slots: list[Slot]
    start: int
    end: int
    began: int


def run(program: Program, event: Event, instance: Instance | None, row: Bindings) -> list[Slot] | None:
    """Return the values that a program stores, in the order of slots, or None if it fails."""
    stored: dict[int, Slot] = {}
    scratch: dict[int, Slot] = {}

    def load(operand: int) -> Any:
        mode, number = Mode(operand >> MODE_BITS), operand & ((1 << MODE_BITS) - 1)
        if mode is Mode.EVENT:
            return _column(program.columns[number], event, row)
        if mode is Mode.BOUND:
            assert instance is not None
            return instance.slots[number]
        if mode is Mode.CONSTANT:
            constant = program.constants[number]
            return constant.value if isinstance(constant, Literal) else row[constant.name]
        if mode is Mode.SCRATCH:
            return scratch[number]
        if mode is Mode.DURATION:
            return event.end - (event if instance is None else instance).start + 1
        return event

    at = 0
    code = program.code.tolist()
    while at < len(code):
        do = Do(code[at][0])
        a, b, c = code[at][1:]
        at += 1
        if do in _COMPUTED:
            assert a < program.scratch
            scratch[a] = _COMPUTED[do](load(b), load(c))
        elif do is Do.STORE:
            stored[a] = load(b)
        elif do is Do.LINK:
            stored[a] = (*(load(b) or ()), event)
        elif do is Do.JUMP or not _passes(do, load(b), lambda c=c: load(c)):  # type: ignore[misc]
            if a == FAIL:
                return None
            assert a >= at
            at = a
    assert sorted(stored) == list(range(len(stored)))
    return [stored[slot] for slot in range(len(stored))]


def _column(column: Column, event: Event, row: Bindings) -> Slot:
    if isinstance(column, str):
        return event.attributes.get(column)
    assert bind_condition(column, row) == column
    return True if truth(column, event.attributes) else None


def _passes(do: Do, b: Slot, other: Callable[[], Slot]) -> bool:
    if do is Do.PRESENT or do is Do.MISSING:
        return (b is None) is (do is Do.MISSING)
    if do is Do.TRUE:
        return b is True
    c = other()
    if b is None or c is None:
        return False
    if do in _OF_TEXTS:
        return isinstance(b, str) and isinstance(c, str) and _OF_TEXTS[do](b, c)
    return kind_of(b) is kind_of(c) and _COMPARED[do](b, c)  # type: ignore[arg-type]


class Machine:
    """A running automaton, with the automata of its sequences in parentheses."""

    def __init__(self, automaton: Automaton, row: Bindings, since: int | None) -> None:
        self._automaton = automaton
        self._row = row
        self._since = since
        self._nodes: list[list[Instance]] = [[] for _ in automaton.nodes]
        self._pending: list[list[Instance]] = [[] for _ in automaton.nodes]
        self._inner = {name: Machine(inner, row, since) for name, inner in automaton.inner}

    def install(self) -> None:
        """End an epoch: what was touched goes, what was made in it comes."""
        for waiting, pending in zip(self._nodes, self._pending, strict=True):
            waiting[:] = [instance for instance in waiting if not instance.touched] + pending
            pending.clear()
        for inner in self._inner.values():
            inner.install()

    def process(self, event: Event) -> Iterator[Found]:
        """Return the matches that an event completes."""
        yield from self._take(event, event.end)
        for name, inner in self._inner.items():
            for found in inner.process(event):
                match = match_of(inner._automaton.output, found)
                selected = inner._automaton.output.selected
                made = published_event(name, match, selected=selected, start=found.start, end=found.end)
                yield from self._take(made, found.began)

    def waiting(self) -> list[int]:
        """Return the number of instances at each node."""
        return [len(instances) for instances in self._nodes]

    def _take(self, event: Event, began: int) -> Iterator[Found]:
        automaton = self._automaton
        if event.stream == automaton.stream and (self._since is None or began > self._since):
            yield from self._leave(0, event, None, began)
        for number, node in enumerate(automaton.nodes):
            if event.stream == node.stream:
                for instance in self._nodes[number]:
                    if self._expired(node, instance, event):
                        instance.touched = True
                    elif instance.end < event.start and self._guarded(node, event, instance):
                        instance.touched = True
                        if node.rebind is not None and self._holds(node.rebind.test, event, instance):
                            again = self._made(node.rebind, event, instance, instance.began)
                            self._pending[number].append(
                                Instance(again.slots, again.start, again.end, again.began)
                            )
                            assert len(again.slots) == len(node.slots)
                        yield from self._leave(number + 1, event, instance, instance.began)

    def _leave(self, number: int, event: Event, instance: Instance | None, began: int) -> Iterator[Found]:
        edge = self._automaton.edges[number]
        if not self._holds(edge.test, event, instance):
            return
        made = self._made(edge, event, instance, began)
        if number == len(self._nodes):
            assert len(made.slots) == self._automaton.output.width
            yield made
        else:
            assert len(made.slots) == len(self._automaton.nodes[number].slots)
            self._pending[number].append(Instance(made.slots, made.start, made.end, made.began))

    def _made(self, edge: Edge, event: Event, instance: Instance | None, began: int) -> Found:
        slots = run(edge.assign, event, instance, self._row)
        assert slots is not None
        return Found(slots, (event if instance is None else instance).start, event.end, began)

    def _holds(self, test: Test, event: Event, instance: Instance | None) -> bool:
        return self._static(test.static, event) and run(test.program, event, instance, self._row) is not None

    def _static(self, condition: Condition, event: Event) -> bool:
        return condition_truth(bind_condition(condition, self._row), event.attributes) is True

    def _guarded(self, node: Node, event: Event, instance: Instance) -> bool:
        guard = node.guard
        holds = self._holds(guard.test, event, instance)
        keyed = all(
            _passes(Do.EQ, event.attributes.get(path), lambda slot=slot: instance.slots[slot])  # type: ignore[misc]
            for path, slot in guard.keys
        )
        rest = (
            self._static(guard.test.static, event) and run(guard.rest, event, instance, self._row) is not None
        )
        assert holds is (keyed and rest), "a guard and its keys with the rest say the same"
        return holds

    def _expired(self, node: Node, instance: Instance, event: Event) -> bool:
        longest = node.longest
        if isinstance(longest, Parameter):
            longest = math.floor(self._row[longest.name])  # type: ignore[arg-type]
        return longest is not None and event.end - instance.start + 1 > longest


def match_of(output: Output, found: Found) -> SequenceMatch:
    """Return the match of an output."""
    slots: list[Any] = found.slots
    steps = tuple(
        Step(
            part.alias,
            slots[part.first],
            slots[part.last],
            None if part.chain is None else slots[part.chain],
        )
        for part in output.parts
    )
    return SequenceMatch(steps, {name: slots[slot] for name, slot in output.values})


class _Subscription(Struct):
    automaton: Automaton
    machine: Machine


class _NewMatches(Struct):
    """Everything one call of `advance` found, as columns."""

    subscriptions: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    matches: list[SequenceMatch] = field(default_factory=list)


class PlainMatcher:
    """Runs every subscription by itself."""

    def __init__(self, mode: Optimisations = MODES["cayuga"]) -> None:
        self._mode = mode
        self._held: dict[int, _Subscription] = {}
        self._epoch: int | None = None

    def add(self, numbers: IdArray, prepared: CompiledSequence, columns: Mapping[str, Rows]) -> None:
        for place, number in enumerate(numbers.tolist()):
            row = bindings_at(columns, place)
            automaton = prepared.automaton
            # A text is read as a timestamp beside a constant that is one, and that is seen when it is compiled.
            in_programs = parameters_in_programs(automaton)
            timed = any(isinstance(value, datetime) for name, value in row.items() if name in in_programs)
            if automaton.by_row or timed or not (self._mode.edges and self._mode.instances):
                names = bound_names(prepared.query, row)
                expression = bind_expression(prepared.expression, row, names)
                automaton = compile_expression(
                    expression, mode=self._mode, full=prepared.full, publish=prepared.publishes
                )
            self._held[number] = _Subscription(automaton, Machine(automaton, row, self._epoch))

    def remove(self, numbers: IdArray) -> None:
        for number in numbers.tolist():
            self._held.pop(number, None)

    def process(self, arrivals: TimedBatch) -> SequenceMatches:
        new = _NewMatches()
        published: list[tuple[int, Event]] = []
        for place in range(len(arrivals)):
            waiting = [arrivals.event(place)]
            if self._epoch is None or waiting[0].end > self._epoch:
                for held in self._held.values():
                    held.machine.install()
                self._epoch = waiting[0].end
            while waiting:
                made = list(self._process(waiting.pop(), place, new))
                published += [(place, event) for event in made]
                waiting += made
        return SequenceMatches(
            np.array(new.subscriptions, dtype=np.int64),
            np.array(new.places, dtype=np.int64),
            np.array([found.start for found in new.found], dtype=np.int64),
            np.array([found.end for found in new.found], dtype=np.int64),
            lambda place: new.matches[place],
            tuple(published),
        )

    def waiting(self, number: int) -> list[int]:
        """Return the number of a subscription's instances at each node."""
        return self._held[number].machine.waiting()

    def _process(self, event: Event, place: int, new: _NewMatches) -> Iterator[Event]:
        for number, held in self._held.items():
            for found in held.machine.process(event):
                match = match_of(held.automaton.output, found)
                new.subscriptions.append(number)
                new.places.append(place)
                new.found.append(found)
                new.matches.append(match)
                if held.automaton.publish is not None:
                    selected = held.automaton.output.selected
                    yield published_event(
                        held.automaton.publish, match, selected=selected, start=found.start, end=found.end
                    )
