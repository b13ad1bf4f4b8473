"""Parameters in automata: where a template's rows can share one, and where they cannot."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.model.conditions import Condition, Predicate, leaves
from tocsin.model.terms import Parameter
from tocsin.sequences.automaton import Automaton, Edge, Test
from tocsin.sequences.programs import Program

__all__ = ["needs_rows", "parameters_in_programs"]


def needs_rows(automaton: Automaton) -> bool:
    """Tell whether the rows of a template have to be compiled one by one.

    They do where a parameter is in a truth that a column holds, and where it is in a sequence in parentheses, which
    has one name for all.
    """
    in_columns = any(
        isinstance(column, Predicate) and any(_in_condition(column))
        for program in _programs(automaton)
        for column in program.columns
    )
    return in_columns or any(inner.by_row or _has_parameters(inner) for _, inner in automaton.inner)


def parameters_in_programs(automaton: Automaton) -> frozenset[str]:
    """Return the parameters that are constants of programs.

    A row that gives one of them a timestamp has to be compiled by itself: a text beside a timestamp constant is read
    as a timestamp, which no program does.
    """
    return frozenset(
        constant.name
        for program in _programs(automaton)
        for constant in program.constants
        if isinstance(constant, Parameter)
    )


def _has_parameters(automaton: Automaton) -> bool:
    if any(isinstance(node.longest, Parameter) for node in automaton.nodes):
        return True
    if any(any(_in_condition(test.static)) for test in _tests(automaton)):
        return True
    return bool(parameters_in_programs(automaton))


def _edges(automaton: Automaton) -> Iterator[Edge]:
    yield from automaton.edges
    for node in automaton.nodes:
        if node.rebind is not None:
            yield node.rebind


def _tests(automaton: Automaton) -> Iterator[Test]:
    for node in automaton.nodes:
        yield node.guard.test
    for edge in _edges(automaton):
        yield edge.test


def _programs(automaton: Automaton) -> Iterator[Program]:
    for test in _tests(automaton):
        yield test.program
    for edge in _edges(automaton):
        yield edge.assign


def _in_condition(condition: Condition) -> Iterator[Parameter]:
    """Return the parameters of a condition whose predicates compare attributes with constants."""
    for predicate in leaves(condition):
        for term in (predicate.subject, *predicate.operands):
            if isinstance(term, Parameter):
                yield term
