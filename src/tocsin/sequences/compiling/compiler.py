"""Building an automaton, from its end to its beginning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from tocsin.model import queries
from tocsin.model.conditions import TRUE, Condition, Operator, Predicate
from tocsin.model.terms import Attribute, Parameter
from tocsin.sequences.algebra import Expression, output_values, reads_of
from tocsin.sequences.automaton import Automaton, Edge, Guard, Node, Output, Part, Test
from tocsin.sequences.compiling import ir
from tocsin.sequences.compiling.assembly import assign_program, test_program
from tocsin.sequences.compiling.chains import (
    Chain,
    ChainStep,
    both,
    bound_durations,
    chain_of,
    move_formulas_back,
)
from tocsin.sequences.compiling.checks import checks_of
from tocsin.sequences.compiling.formulas import split
from tocsin.sequences.modes import MODES, Optimisations
from tocsin.sequences.programs import Program
from tocsin.sequences.translation import expression_of


def compile_expression(
    expression: Expression,
    *,
    mode: Optimisations = MODES["cayuga"],
    full: bool = False,
    publish: str | None = None,
) -> Automaton:
    """Return the automaton of an expression, or raise `SubscriptionError` if it cannot be compiled.

    Where `mode` has no index of edges (or of instances), the conditions of edges (or of guards) stay whole in their programs.
    With `full`, instances also hold the chain of all events of each step. `publish` is the stream it feeds.
    """
    chain = chain_of(expression)
    steps = chain.steps
    move_formulas_back(steps)
    longest = bound_durations(steps)
    output, wanted = _output(chain, output_values(expression).names, full=full)
    nodes: list[Node] = []
    edges: list[Edge] = []
    for position in range(len(steps) - 1, 0, -1):
        step = steps[position]
        tests = _step_tests(step, mode)
        keys = _keys(step, tests, wanted)
        slots = {key: slot for slot, key in enumerate(keys)}
        edges.append(Edge(tests.ending.test(slots), assign_program(wanted, slots)))
        nodes.append(_node(step, tests, slots, longest[position - 1]))
        assert step.before is not None  # noqa: S101 - there is a step before
        wanted = [step.before.of(key) for key in keys]
    first = _step_tests(steps[0], mode)
    edges.append(Edge(first.ending.test({}), assign_program(wanted, {})))
    inner = {
        step.stream.name: compile_expression(step.stream.of, mode=mode, publish=step.stream.name)
        for step in steps
        if step.stream.of is not None
    }
    automaton = Automaton(
        steps[0].stream.name,
        steps[0].alias,
        tuple(reversed(nodes)),
        tuple(reversed(edges)),
        output,
        publish,
        tuple(inner.items()),
    )
    parenthesised = [step.stream.of for step in steps if step.stream.of is not None]
    return replace(automaton, by_row=needs_rows(automaton, parenthesised))


class _Tests(Struct, frozen=True):
    """A test whose slots are not known yet."""

    condition: Condition
    static: Condition
    checks: tuple[ir.Checks, ...]
    all_checks: tuple[ir.Checks, ...]  # including those of the static part

    def test(self, slots: Mapping[ir.Key, int]) -> Test:
        return Test(self.condition, self.static, test_program(self.checks, slots), self._whole(slots))

    def _whole(self, slots: Mapping[ir.Key, int]) -> Program | None:
        if self.static == TRUE:
            return None
        program = test_program(self.all_checks, slots)
        return program if all(isinstance(column, str) for column in program.columns) else None


class _Step(Struct, frozen=True):
    """The tests of one step: for the next event, for an iteration, and for leaving it."""

    guard: _Tests
    going: _Tests
    ending: _Tests
    equal: tuple[tuple[str, Attribute], ...]  # an attribute of the event, and the held value it equals
    rest: tuple[ir.Checks, ...]


def _step_tests(step: ChainStep, mode: Optimisations) -> _Step:
    """Return the tests of a step, with the equalities of its guard that an instance index can answer."""
    guard, formulas = _part(step.on, step.guard, indexed=mode.instances)
    going, _ = _part(step.while_, step.going, indexed=mode.edges)
    ending, _ = _part(both(step.while_, step.selected), [*step.going, *step.where], indexed=mode.edges)
    equal = [(formula, found) for formula in formulas if (found := _equality(formula)) is not None]
    keyed = [formula for formula, _ in equal]
    rest = tuple(checks_of(formula) for formula in formulas if formula not in keyed)
    return _Step(guard, going, ending, tuple(found for _, found in equal), rest)


def _part(
    condition: Condition, formulas: list[ir.Formula], *, indexed: bool
) -> tuple[_Tests, list[ir.Formula]]:
    static, dynamic = split(formulas) if indexed else (TRUE, formulas)
    checks, whole = (tuple(checks_of(formula) for formula in some) for some in (dynamic, formulas))
    return _Tests(condition, static, checks, whole), dynamic


def _equality(formula: ir.Formula) -> tuple[str, Attribute] | None:
    """Return the event's attribute and the held value, if a formula is their equality."""
    if not isinstance(formula, ir.Atom) or formula.operator is not Operator.EQ:
        return None
    for one, other in ((formula.subject, formula.operands[0]), (formula.operands[0], formula.subject)):
        if isinstance(one, ir.EventColumn) and isinstance(one.column, str) and isinstance(other, ir.Stored):
            assert isinstance(other.key, Attribute)  # noqa: S101 - formulas name attributes
            return one.column, other.key
    return None


def _keys(step: ChainStep, tests: _Step, wanted: Sequence[ir.Value]) -> list[ir.Key]:
    """Return the keys that an instance at a step holds: for the tests there, and for the later steps."""
    waiting = list(_held((*tests.guard.checks, *tests.going.checks, *tests.ending.checks, *wanted)))
    found: dict[ir.Key, None] = {}
    while waiting:
        key = waiting.pop()
        if key not in found:
            found[key] = None
            if step.again is not None:
                waiting += _held((step.again.of(key),))
    return sorted(found, key=_order)


def _held(values: Iterable[ir.Value | ir.Checks]) -> Iterator[ir.Key]:
    for value in values:
        for part in ir.parts_of(value):
            if isinstance(part, ir.Stored):
                yield part.key


def _order(key: ir.Key) -> tuple[int, str, str, str]:
    """Return a sort key, so that nodes with equal slots have them in equal order: named values first."""
    if isinstance(key, Attribute):
        return (0, key.alias or "", key.path, "")
    if isinstance(key, ir.Truth):
        return (1, key.of.alias or "", key.of.path, repr((key.operator, key.operands)))
    return (2, key.alias, str(int(key.mark)), "")


def _node(
    step: ChainStep, tests: _Step, slots: Mapping[ir.Key, int], longest: int | Parameter | None
) -> Node:
    """Return the automaton's node of a step."""
    rebind = None
    test = tests.guard.test(slots)
    if step.again is not None:
        rebind = Edge(tests.going.test(slots), assign_program([step.again.of(key) for key in slots], slots))
    return Node(
        step.stream.name,
        step.alias,
        Guard(
            test,
            tuple((path, slots[attribute]) for path, attribute in tests.equal),
            test_program(tests.rest, slots) if tests.equal else test.program,
        ),
        tuple(key if isinstance(key, Attribute) else None for key in slots),
        longest,
        rebind,
    )


def _output(chain: Chain, names: tuple[str, ...], *, full: bool) -> tuple[Output, list[ir.Value]]:
    """Return the output, with values of these names, and the value of each of its slots."""
    after = chain.steps[-1].after
    if chain.selected is None:
        values = [after.value(Attribute(name)) for name in names]
    else:
        values = [ir.read_item(computed.term, after.value) for computed in chain.selected]
    named = tuple((name, slot) for slot, name in enumerate(names))
    parts: list[Part] = []
    for step in chain.steps:
        marks = [ir.Mark.FIRST] * (step.again is not None) + [ir.Mark.LAST] + [ir.Mark.CHAIN] * full
        slots = {mark: len(values) + slot for slot, mark in enumerate(marks)}
        values += [after.of(ir.Marked(step.alias, mark)) for mark in marks]
        last = slots[ir.Mark.LAST]
        parts.append(
            Part(step.alias, step.stream.name, slots.get(ir.Mark.FIRST, last), last, slots.get(ir.Mark.CHAIN))
        )
    return Output(len(values), tuple(parts), named, chain.selected is not None), values


def needs_rows(automaton: Automaton, inner: Iterable[Expression]) -> bool:
    """Tell whether the rows of a template have to be compiled one by one.

    They do if a parameter is in a residual predicate, or anywhere in one of `inner`, the sequences in parentheses: these
    are shared by their names, and each row's has a name of its own.
    """
    in_columns = any(
        isinstance(column, Predicate) and _has_parameters(column)
        for program in _programs(automaton)
        for column in program.columns
    )
    return in_columns or any(map(_has_parameters, inner))


def parameters_in_programs(automaton: Automaton) -> frozenset[str]:
    """Return the parameters that are constants of programs.

    A row with a timestamp for one of them has to be compiled by itself: a text beside a timestamp constant is read as a
    timestamp, which no program does.
    """
    return frozenset(
        constant.name
        for program in _programs(automaton)
        for constant in program.constants
        if isinstance(constant, Parameter)
    )


def _has_parameters(whole: Expression | Predicate) -> bool:
    """Tell whether a parameter occurs anywhere in an expression or predicate."""
    waiting: list[object] = [whole]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Parameter):
            return True
        if isinstance(part, tuple):
            waiting += part
        elif isinstance(part, Struct):
            waiting += [getattr(part, name) for name in part.__struct_fields__]
    return False


def _programs(automaton: Automaton) -> Iterator[Program]:
    for node in automaton.nodes:
        yield node.guard.test.program
    rebinds = (node.rebind for node in automaton.nodes)
    for edge in (*automaton.edges, *rebinds):
        if edge is not None:
            yield from (edge.test.program, edge.assign)


class CompiledSequence(Struct, frozen=True):
    """A sequence, or a template of sequences, as a `SequenceMatcher` takes it.

    `reads` are the streams it reads, including those of sequences in parentheses, and `publishes` the stream it
    feeds. With `full`, its matches have every event of their steps.
    """

    query: queries.Sequence
    expression: Expression
    automaton: Automaton
    reads: frozenset[str]
    publishes: str | None = None
    full: bool = False


def compile_sequence(
    query: queries.Sequence,
    ticks: Mapping[str, int] = MappingProxyType({}),
    *,
    mode: Optimisations = MODES["cayuga"],
    full: bool = False,
) -> CompiledSequence:
    """Return a compiled sequence, or raise `SubscriptionError` naming the part that cannot be compiled.

    `ticks` has the microseconds of a tick of each declared stream. Where `mode` has no index of
    edges (or of instances), the conditions of edges (or of guards) stay whole in their programs.

    >>> from tocsin.language import parse
    >>> compiled = compile_sequence(parse("from stock a next stock b on b.name = a.name"))
    >>> compiled.automaton.nodes[0].guard.keys, compiled.reads
    ((('name', 0),), frozenset({'stock'}))
    """
    expression = expression_of(query, ticks)
    automaton = compile_expression(expression, mode=mode, full=full, publish=query.publish)
    return CompiledSequence(query, expression, automaton, reads_of(expression), query.publish, full)
