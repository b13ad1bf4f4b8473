"""Programs and automata as readable text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tocsin.language.printer import condition_text, name_text, term_text
from tocsin.model.conditions import TRUE, Condition, Predicate
from tocsin.model.terms import Attribute, Parameter
from tocsin.sequences._kernels.instructions import FAIL, MODE_BITS, Do, Mode
from tocsin.sequences.automaton import Automaton, Edge, Node, Test
from tocsin.sequences.programs import Column, Program

_SIGNS: Final = {
    Do.ADD: "+",
    Do.SUBTRACT: "-",
    Do.MULTIPLY: "*",
    Do.DIVIDE: "/",
    Do.EQ: "=",
    Do.NE: "!=",
    Do.LT: "<",
    Do.LE: "<=",
    Do.GT: ">",
    Do.GE: ">=",
}
_ALONE: Final = {Do.PRESENT: "is present", Do.MISSING: "is missing", Do.TRUE: "is true"}
_FUNCTIONS: Final = (Do.SUM, Do.LEAST, Do.GREATEST, Do.COUNT, Do.FIRST)


def automaton_lines(automaton: Automaton) -> list[str]:
    """Return an automaton line by line: its edges, and the nodes between them with their slots and tests."""
    lines = [f"start: {automaton.stream} {automaton.alias}"]
    nodes: Sequence[Node] = automaton.nodes
    for number, edge in enumerate(automaton.edges):
        before = nodes[number - 1].slots if number else ()
        after = nodes[number].slots if number < len(nodes) else _output_names(automaton)
        target = f"node {number + 1}" if number < len(nodes) else "end"
        lines += _edge_lines(f"edge to {target}", edge, before, after)
        if number < len(nodes):
            lines += _node_lines(number + 1, nodes[number])
    for name, inner in automaton.inner:
        lines.append(f"within: {name}")
        lines += [f"  {line}" for line in automaton_lines(inner)]
    return lines


def program_lines(
    program: Program,
    before: Sequence[Attribute | str | None] = (),
    after: Sequence[Attribute | str | None] = (),
) -> list[str]:
    """Return a program, one instruction a line; `before` and `after` are the names of the slots it reads and writes.

    >>> import numpy as np
    >>> from tocsin.sequences._kernels.instructions import Mode
    >>> from tocsin.sequences.programs import operand
    >>> event, slot = operand(Mode.EVENT), operand(Mode.BOUND)
    >>> code = np.array([(Do.EQ, FAIL, event, slot), (Do.STORE, 0, event, 0)], dtype=np.int32)
    >>> program_lines(Program(code, ("name",)), [Attribute("name", "a")], [Attribute("name", "b")])
    ['0: name = a.name', '1: b.name := name']
    """
    return [
        f"{number}: {_instruction(program, row, before, after)}"
        for number, row in enumerate(program.code.tolist())
    ]


def slot_text(slot: Attribute | str | None, number: int) -> str:
    """Return the name of a slot."""
    if slot is None:
        return f"#{number}"
    return slot if isinstance(slot, str) else term_text(slot, sequence=True)


def _edge_lines(
    title: str, edge: Edge, before: Sequence[Attribute | None], after: Sequence[Attribute | str | None]
) -> Iterator[str]:
    yield title
    yield from _test_lines(edge.test, edge.test.program, before)
    yield from (f"    {line}" for line in program_lines(edge.assign, before, after))


def _node_lines(number: int, node: Node) -> Iterator[str]:
    longest = "" if node.longest is None else f", at most {_bound(node)} ticks"
    yield f"node {number}: waits for {node.stream} {node.alias}{longest}"
    held = ", ".join(slot_text(slot, place) for place, slot in enumerate(node.slots))
    yield f"  holds {held}"
    guard = node.guard
    for path, slot in guard.keys:
        yield f"  key {name_text(path)} = {slot_text(node.slots[slot], slot)}"
    yield from _test_lines(guard.test, guard.rest, node.slots)
    if node.rebind is not None:
        yield from (f"  {line}" for line in _edge_lines("rebind", node.rebind, node.slots, node.slots))


def _bound(node: Node) -> str:
    return f":{node.longest.name}" if isinstance(node.longest, Parameter) else str(node.longest)


def _test_lines(test: Test, program: Program, slots: Sequence[Attribute | None]) -> Iterator[str]:
    if test.static != TRUE:
        yield f"  static {_condition(test.static)}"
    yield from (f"  {line}" for line in program_lines(program, slots))


def _condition(condition: Condition) -> str:
    return condition_text(condition, sequence=True)


def _output_names(automaton: Automaton) -> list[str | None]:
    output = automaton.output
    names: list[str | None] = [None] * output.width
    for name, slot in output.values:
        names[slot] = name
    for part in output.parts:
        names[part.first] = f"first {part.alias}"
        names[part.last] = f"last {part.alias}"
        if part.chain is not None:
            names[part.chain] = f"all {part.alias}"
    return names


def _instruction(
    program: Program,
    row: list[int],
    before: Sequence[Attribute | str | None],
    after: Sequence[Attribute | str | None],
) -> str:
    do, (a, b, c) = Do(row[0]), row[1:]
    if do is Do.JUMP:
        return f"go to {a}"
    left, right = _operand(program, b, before), _operand(program, c, before)
    if do is Do.STORE or do is Do.LINK:
        target = slot_text(after[a] if a < len(after) else None, a)
        return f"{target} := {left}" if do is Do.STORE else f"{target} := {left} and this event"
    if do < Do.STORE:
        made = f"{do.name.lower()}({left}, {right})" if do in _FUNCTIONS else f"{left} {_SIGNS[do]} {right}"
        return f"${a} := {made}"
    test = f"{left} {_ALONE[do]}" if do in _ALONE else f"{left} {_sign(do)} {right}"
    return test if a == FAIL else f"{test}, else go to {a}"


def _sign(do: Do) -> str:
    return _SIGNS.get(do) or do.name.lower().replace("_", " ")


def _operand(program: Program, operand: int, slots: Sequence[Attribute | str | None]) -> str:
    mode, number = Mode(operand >> MODE_BITS), operand & ((1 << MODE_BITS) - 1)
    if mode is Mode.EVENT:
        return _column(program.columns[number]) if number < len(program.columns) else ""
    if mode is Mode.BOUND:
        return slot_text(slots[number] if number < len(slots) else None, number)
    if mode is Mode.CONSTANT:
        return term_text(program.constants[number])
    return {Mode.SCRATCH: f"${number}", Mode.DURATION: "duration", Mode.SELF: "this event"}[mode]


def _column(column: Column) -> str:
    return f"[{_condition(column)}]" if isinstance(column, Predicate) else name_text(column)
