"""Random templates: sequences with parameters in the place of some of their constants, and rows that give them values."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.sequences.strategies import STREAMS, TEXTS, sequences, values_of
from tocsin.language import to_text
from tocsin.model import (
    And,
    Arithmetic,
    Attribute,
    Computation,
    Condition,
    Elapsed,
    Fold,
    From,
    Literal,
    Negative,
    Next,
    Not,
    Operator,
    Or,
    Parameter,
    Predicate,
    Sequence,
    Span,
    Step,
    Term,
    Value,
)
from tocsin.model.terms import Aggregate

_PATTERNS = {
    Operator.LIKE: ["a%", "_", "%b%", "%"],
    Operator.NOT_LIKE: ["a%", "_", "%b%", "%"],
    Operator.REGEX: ["^a", "b$", "."],
    Operator.NOT_REGEX: ["^a", "b$", "."],
}
_LISTS = (Operator.IN, Operator.NOT_IN)
_COMPARED = (
    *(Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE),
    *(Operator.BETWEEN, Operator.NOT_BETWEEN),
)
_numbers: st.SearchStrategy[Value] = st.sampled_from([0, 1, 2, 3, 0.5, 2.0, 2**62])


@dataclass
class _Columns:
    """The parameters so far, with a value for each row; some columns can be used again."""

    draw: st.DrawFn
    rows: int
    values: dict[str, list[Value | list[Value]]] = field(default_factory=dict)
    shared: list[str] = field(default_factory=list)

    def add(self, original: Value | list[Value], others: st.SearchStrategy[Value]) -> Parameter:
        name = f"p{len(self.values)}"
        many = isinstance(original, list)
        drawn = st.lists(others, max_size=3) if many else others
        self.values[name] = [original, *(self.draw(drawn) for _ in range(self.rows - 1))]
        return Parameter(name, many)

    def wanted(self) -> bool:
        return self.draw(st.booleans())


@st.composite
def templates(
    draw: st.DrawFn, *, sources: tuple[str, ...] = STREAMS, publish: str | None = None
) -> tuple[str, dict[str, list[Value | list[Value]]]]:
    """A text with parameters, and a column of values for each of them; the first row is likely to find something."""
    columns = _Columns(draw, draw(st.integers(1, 3)))
    query = _sequence(draw(sequences(sources=sources, publish=publish)), columns)
    if not columns.values:  # one at least, so that there are rows
        query = Sequence(query.steps, columns.add(9, st.integers(2, 12)), query.select, query.publish)
    return to_text(query), columns.values


def _sequence(query: Sequence, columns: _Columns) -> Sequence:
    within = query.within
    if isinstance(within, Span) and columns.wanted():
        within = columns.add(within.amount, st.integers(2, 12))
    return Sequence(tuple(_step(step, columns) for step in query.steps), within, query.select, query.publish)


def _step(step: Step, columns: _Columns) -> Step:
    source = step.source if isinstance(step.source, str) else _sequence(step.source, columns)
    where = _condition(step.where, columns)
    if isinstance(step, From):
        return From(source, step.alias, where, _computed(step.compute, columns))
    on = _condition(step.on, columns)
    if isinstance(step, Next):
        return Next(source, step.alias, on, where)
    while_ = _condition(step.while_, columns)
    return Fold(source, step.alias, on, while_, _computed(step.compute, columns), where)


def _computed(values: tuple[Computation, ...], columns: _Columns) -> tuple[Computation, ...]:
    return tuple(Computation(value.name, _term(value.term, columns)) for value in values)


def _condition(condition: Condition, columns: _Columns) -> Condition:
    if isinstance(condition, Predicate):
        return _predicate(condition, columns)
    if isinstance(condition, Not):
        return Not(_condition(condition.condition, columns))
    if isinstance(condition, (And, Or)):
        return type(condition)(tuple(_condition(member, columns) for member in condition.conditions))
    return condition


def _predicate(predicate: Predicate, columns: _Columns) -> Predicate:
    subject, operator, operands = predicate.subject, predicate.operator, predicate.operands
    if operator in _LISTS and columns.wanted():
        members = [operand.value for operand in operands if isinstance(operand, Literal)]
        others = values_of(subject.path) if isinstance(subject, Attribute) else _numbers
        return Predicate(subject, operator, (columns.add(list(members), others),))
    if operator in _LISTS:
        return predicate
    taken = tuple(_operand(subject, operator, operand, columns) for operand in operands)
    return Predicate(_term(subject, columns), operator, taken)


def _operand(subject: Term, operator: Operator, operand: Term, columns: _Columns) -> Term:
    if not isinstance(operand, Literal):
        return _term(operand, columns)
    if not columns.wanted():
        return operand
    if isinstance(subject, Elapsed):
        return columns.add(operand.value, st.integers(1, 9))
    if operator in _PATTERNS:
        return columns.add(operand.value, st.sampled_from(_PATTERNS[operator]))
    if operator not in _COMPARED:
        return columns.add(operand.value, st.sampled_from(TEXTS))
    if columns.shared and columns.wanted():
        return Parameter(columns.draw(st.sampled_from(columns.shared)))
    others = values_of(subject.path) if isinstance(subject, Attribute) else _numbers
    parameter = columns.add(operand.value, others)
    columns.shared.append(parameter.name)
    return parameter


def _term(term: Term, columns: _Columns) -> Term:
    """Return a term in whose arithmetic parameters may stand for numbers."""
    if isinstance(term, Arithmetic):
        return Arithmetic(term.operator, _number(term.left, columns), _number(term.right, columns))
    if isinstance(term, Negative):
        return Negative(_term(term.term, columns))
    if isinstance(term, Aggregate) and term.argument is not None:
        return Aggregate(term.function, _term(term.argument, columns))
    return term


def _number(term: Term, columns: _Columns) -> Term:
    if isinstance(term, Literal) and columns.wanted():
        return columns.add(term.value, _numbers)
    return _term(term, columns)
