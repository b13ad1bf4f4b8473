"""An automaton: what a sequence is compiled to, before it is merged with others and run.

It is left-deep: a chain of nodes, each entered by one edge, the first of them from the start node, and one more edge
that leads to the end. A template's automaton has parameters in its conditions and constants.
"""

from __future__ import annotations

from msgspec import Struct

from tocsin.model.conditions import TRUE, Condition
from tocsin.model.terms import Attribute, Parameter
from tocsin.sequences.programs import NOTHING, Program


class Test(Struct, frozen=True):
    """A condition in two parts that must both hold, and the whole as it was written.

    `static` asks about the event alone (attributes without an alias), so that a matcher can hold it; `program` tests
    the rest. `whole` tests both, where it can be asked without looking at more than values.
    """

    __test__ = False

    condition: Condition = TRUE
    static: Condition = TRUE
    program: Program = NOTHING
    whole: Program | None = None


class Edge(Struct, frozen=True):
    """A way from one node to the next, or, if it rebinds, back to the same.

    `assign` stores every slot of the instance it makes, or of the output.
    """

    test: Test
    assign: Program


class Guard(Struct, frozen=True):
    """What makes an event the next one of an instance.

    `keys` are equalities that must hold, an attribute of the event with a slot of the instance; `rest` is the
    program of `test` without them.
    """

    test: Test
    keys: tuple[tuple[str, int], ...] = ()
    rest: Program = NOTHING


class Node(Struct, frozen=True):
    """Where instances wait for their next event.

    An instance whose duration has come to exceed `longest` ticks can be dropped. `slots` says what each of its values
    is; what is needed for the witness alone has no name.
    """

    stream: str
    alias: str
    guard: Guard
    slots: tuple[Attribute | None, ...]
    longest: int | Parameter | None = None
    rebind: Edge | None = None


class Part(Struct, frozen=True):
    """One step of a witness: the slots of its first and of its last event, and of the chain of all of them."""

    alias: str
    source: str
    first: int
    last: int
    chain: int | None = None


class Output(Struct, frozen=True):
    """What an output's slots hold: the events of each step, and the selected or computed values by name.

    `selected` tells whether the values are all there is to say: what is published then has no other attributes.
    """

    width: int
    parts: tuple[Part, ...]
    values: tuple[tuple[str, int], ...]
    selected: bool


class Automaton(Struct, frozen=True):
    """A chain of nodes; `edges` has one more: that into each of them, and the last one to the end.

    `inner` are the automata of sequences in parentheses, by the name of the stream that they publish to this one.
    The same sequence has the same name wherever it stands. `by_row` tells that a template's rows have to be compiled
    one by one, because a parameter stands where no program can take it.
    """

    stream: str
    alias: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    output: Output
    publish: str | None = None
    inner: tuple[tuple[str, Automaton], ...] = ()
    by_row: bool = False
