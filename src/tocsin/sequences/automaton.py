"""The automaton that a sequence is compiled to, before it is merged with others.

It is left-deep: a chain of nodes, each entered by one edge, the first from the start node, and one more edge to the end.
A template's automaton has parameters in its conditions and constants.
"""

from __future__ import annotations

from msgspec import Struct

from tocsin.model.conditions import TRUE, Condition
from tocsin.model.terms import Attribute, Parameter
from tocsin.sequences.programs import NOTHING, Program


class Test(Struct, frozen=True):
    """A condition in two parts that must both hold, and the whole as it was written.

    `static` is about the event alone (attributes without an alias), so that a matcher can index it; `program` tests
    the rest. `whole` tests both, if it needs no residual predicates.
    """

    __test__ = False

    condition: Condition = TRUE
    static: Condition = TRUE
    program: Program = NOTHING
    whole: Program | None = None


class Edge(Struct, frozen=True):
    """An edge from one node to the next, or, if it rebinds, back to the same node.

    `assign` stores every slot of the instance it makes, or of the output.
    """

    test: Test
    assign: Program


class Guard(Struct, frozen=True):
    """The condition that makes an event the next one of an instance.

    `keys` are equalities that must hold, an attribute of the event with a slot of the instance; `rest` is the
    program of `test` without them.
    """

    test: Test
    keys: tuple[tuple[str, int], ...] = ()
    rest: Program = NOTHING


class Node(Struct, frozen=True):
    """A node, at which instances wait for their next event.

    An instance that has lasted more than `longest` ticks can be dropped. `slots` has the name of each of its values;
    values that only a match needs have none.
    """

    stream: str
    alias: str
    guard: Guard
    slots: tuple[Attribute | None, ...]
    longest: int | Parameter | None = None
    rebind: Edge | None = None


class Part(Struct, frozen=True):
    """One step of a match: the slots of its first and last event, and of the chain of all its events."""

    alias: str
    source: str
    first: int
    last: int
    chain: int | None = None


class Output(Struct, frozen=True):
    """The layout of an output's slots: the events of each step, and the selected or computed values by name.

    If the values were `selected`, a published event has no other attributes.
    """

    width: int
    parts: tuple[Part, ...]
    values: tuple[tuple[str, int], ...]
    selected: bool


class Automaton(Struct, frozen=True):
    """A chain of nodes; `edges` has one more: the edge into each node, and the last one to the end.

    `inner` are the automata of sequences in parentheses, by the name of the stream that they publish to this one;
    equal sequences have equal names. With `by_row` the rows of a template have to be compiled one by one, because a
    parameter stands where no program can read it.
    """

    stream: str
    alias: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    output: Output
    publish: str | None = None
    inner: tuple[tuple[str, Automaton], ...] = ()
    by_row: bool = False
