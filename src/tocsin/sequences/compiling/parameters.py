"""Parameters in automata: whether the rows of a template can share one automaton."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from tocsin.model.conditions import Predicate
from tocsin.model.terms import Parameter
from tocsin.sequences.algebra import Expression
from tocsin.sequences.automaton import Automaton
from tocsin.sequences.programs import Program


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
