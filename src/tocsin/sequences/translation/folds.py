"""Translating a fold to an iteration: each aggregate gets an initial value, an update, and a final term."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tocsin.model.queries import Computation, Fold
from tocsin.model.terms import (
    Aggregate,
    AggregateFunction,
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Literal,
    Negative,
    Parameter,
    Term,
)
from tocsin.model.values import Kind
from tocsin.sequences.algebra import HIDDEN, Accumulated, Compute, Computed, Expression, Item, Iterate, Rename
from tocsin.sequences.substitution import has_aggregate
from tocsin.sequences.translation.scope import StepScope

_ONE = Literal(1, Kind.NUMBER)


def iteration(left: Expression, right: Rename, step: Fold, scope: StepScope) -> Expression:
    """Return a fold over `right`, with its computed values but without its `where`.

    A single aggregate keeps its own name. A term that contains aggregates, also `avg`, is kept in hidden parts, and a
    `Compute` around the iteration combines them; inside the fold, the parts of the iteration before are combined.
    """
    parts = _Parts(len(scope.aliases))
    finished = {value.name: parts.split(value) for value in step.compute}
    compute = tuple(Computed(part.name, part.update(scope, finished)) for part in parts.all)
    begin = tuple(Computed(part.name, part.initial(scope, finished)) for part in parts.all if part.begins)
    on, while_ = scope.condition(step.on, finished), scope.condition(step.while_, finished)
    lefts = tuple(reversed(scope.aliases[:-1]))
    expression: Expression = Iterate(left, right, right.alias, lefts, on, while_, compute, begin)
    finishers = tuple(Computed(name, term) for name, term in finished.items() if term != Attribute(name))
    scope.compute(step.compute)
    return Compute(expression, finishers) if finishers else expression


@dataclass
class _Part:
    """One value that an iteration keeps: a term of the fold, or an aggregate of a term."""

    name: str
    term: Term
    function: AggregateFunction | None
    begins: bool

    def update(self, scope: StepScope, finished: dict[str, Term]) -> Item:
        """Return its value after an iteration."""
        term = scope.term(self.term, finished)
        return term if self.function is None else Accumulated(self.function, Attribute(self.name), term)

    def initial(self, scope: StepScope, folded: Iterable[str]) -> Item:
        """Return its value before the first iteration."""
        term = scope.beginning(self.term, folded)
        return term if self.function is None else Accumulated(self.function, None, term)


@dataclass
class _Parts:
    """The parts of all computed values of one fold."""

    step: int
    all: list[_Part] = field(default_factory=list)

    def split(self, value: Computation) -> Term:
        """Add the parts of a computed value, and return the term that combines them."""
        term = value.term
        if isinstance(term, Aggregate) and term.function is not AggregateFunction.AVG:
            return self._add(value.name, term.argument, term.function, begins=True)
        if has_aggregate(term):
            return self._hidden(value.name, term)
        return self._add(value.name, term, None, begins=False)

    def _hidden(self, name: str, term: Term) -> Term:
        if isinstance(term, (Literal, Parameter)):
            return term
        if not has_aggregate(term):
            return self._add(self._name(name), term, None, begins=True)
        if isinstance(term, Arithmetic):
            return Arithmetic(term.operator, self._hidden(name, term.left), self._hidden(name, term.right))
        if isinstance(term, Negative):
            return Negative(self._hidden(name, term.term))
        assert isinstance(term, Aggregate)  # noqa: S101 - nothing else has one
        if term.function is not AggregateFunction.AVG:
            return self._add(self._name(name), term.argument, term.function, begins=True)
        assert term.argument is not None  # noqa: S101 - only count(*) has none
        total = self._add(self._name(name), term.argument, AggregateFunction.SUM, begins=True)
        # Only numbers are counted: the product of anything else is absent.
        number = Arithmetic(ArithmeticOperator.MULTIPLY, term.argument, _ONE)
        count = self._add(self._name(name), number, AggregateFunction.COUNT, begins=True)
        return Arithmetic(ArithmeticOperator.DIVIDE, total, count)

    def _name(self, name: str) -> str:
        return f"{HIDDEN}{self.step}.{len(self.all)}.{name}"

    def _add(
        self, name: str, term: Term | None, function: AggregateFunction | None, *, begins: bool
    ) -> Attribute:
        self.all.append(_Part(name, _ONE if term is None else term, function, begins))
        return Attribute(name)
