"""Terms and conditions built with Python's operators."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NoReturn

from msgspec.structs import replace

from tocsin.language.parsing.parser import canonical
from tocsin.language.parsing.terms import MAX_OPERATIONS, UNITS
from tocsin.language.parsing.tokens import BARE_NAME
from tocsin.language.patterns import like
from tocsin.language.printer import condition_text, term_text
from tocsin.model import terms
from tocsin.model.conditions import NEGATED, And, Condition, Not, Operator, Or, Predicate
from tocsin.model.conditions import all_of as conjunction
from tocsin.model.conditions import any_of as disjunction
from tocsin.model.errors import KindError, LanguageError, TemplateError
from tocsin.model.queries import Filter, Query


class Clause:
    """A condition under construction: join clauses with `&` and `|`, negate with `~`.

    >>> (attr("symbol") == "IBM") & ~(attr("price") <= 100)
    Clause("symbol = 'IBM' and not price <= 100")
    """

    __slots__ = ("condition", "depth")

    def __init__(self, condition: Condition, depth: int = 0) -> None:
        self.condition = condition
        self.depth = depth

    def __and__(self, other: Clause) -> Clause:
        return self._join(other, And)

    def __or__(self, other: Clause) -> Clause:
        return self._join(other, Or)

    def __invert__(self) -> Clause:
        return Clause(Not(self.condition), _deeper(self))

    def __bool__(self) -> NoReturn:
        raise TypeError("a clause has no truth value: join clauses with & and |, not with `and` and `or`")

    def __repr__(self) -> str:
        return f'Clause("{condition_text(self.condition)}")'

    def build(self, *, template: bool = False) -> Query:
        """Return the filter over every stream with this condition."""
        return canonical(Filter(self.condition), template=template)

    def _join(self, other: Clause, connective: type[And] | type[Or]) -> Clause:
        if not isinstance(other, Clause):
            return NotImplemented
        members = (*_members(self, connective), *_members(other, connective))
        return Clause(connective(members), _deeper(self, other) - 1)


class Expression:
    """A term under construction. Comparing it gives a `Clause`.

    >>> attr("price") > 1.05 * attr("open")
    Clause("price > 1.05 * open")
    """

    __slots__ = ("depth", "term")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: terms.Term, depth: int = 0) -> None:
        self.term = term
        self.depth = depth

    def __repr__(self) -> str:
        return f'Expression("{term_text(self.term)}")'

    def __eq__(self, other: object) -> Clause:  # type: ignore[override]
        return self._compare(Operator.EQ, other)

    def __ne__(self, other: object) -> Clause:  # type: ignore[override]
        return self._compare(Operator.NE, other)

    def __lt__(self, other: object) -> Clause:
        return self._compare(Operator.LT, other)

    def __le__(self, other: object) -> Clause:
        return self._compare(Operator.LE, other)

    def __gt__(self, other: object) -> Clause:
        return self._compare(Operator.GT, other)

    def __ge__(self, other: object) -> Clause:
        return self._compare(Operator.GE, other)

    def between(self, low: object, high: object) -> Clause:
        """Return the clause that the value lies in the closed interval."""
        return self._compare(Operator.BETWEEN, low, high)

    def is_in(self, members: Iterable[object] | Expression) -> Clause:
        """Return the clause that the value is one of the members; a parameter stands for a whole list."""
        if isinstance(members, Expression):
            if not isinstance(members.term, terms.Parameter):
                raise TypeError("`is_in` takes a list of constants, or a parameter that stands for one")
            return Clause(Predicate(self.term, Operator.IN, (replace(members.term, many=True),)))
        if isinstance(members, (str, bytes)):
            raise TypeError("`is_in` takes a list of constants; for one text, use ==")
        return self._compare(Operator.IN, *members)

    def like(self, pattern: str | Expression) -> Clause:
        """Return the clause that the string matches the pattern; % is any text, _ one character."""
        if isinstance(pattern, Expression):
            return self._compare(Operator.LIKE, pattern)
        return Clause(_pattern(self.term, pattern), self.depth)

    def starts_with(self, text: object) -> Clause:
        """Return the clause that the string begins with `text`."""
        return self._compare(Operator.STARTS_WITH, text)

    def ends_with(self, text: object) -> Clause:
        """Return the clause that the string ends with `text`."""
        return self._compare(Operator.ENDS_WITH, text)

    def contains(self, text: object) -> Clause:
        """Return the clause that the string contains `text`."""
        return self._compare(Operator.CONTAINS, text)

    def matches(self, pattern: object) -> Clause:
        """Return the clause that the regular expression (RE2 syntax) matches anywhere in the string."""
        return self._compare(Operator.REGEX, pattern)

    def is_missing(self) -> Clause:
        """Return the clause that the event lacks this attribute."""
        return self._compare(Operator.MISSING)

    def is_present(self) -> Clause:
        """Return the clause that the event has this attribute."""
        return self._compare(NEGATED[Operator.MISSING])

    def __add__(self, other: object) -> Expression:
        return self._combine(terms.ArithmeticOperator.ADD, self, other)

    def __radd__(self, other: object) -> Expression:
        return self._combine(terms.ArithmeticOperator.ADD, other, self)

    def __sub__(self, other: object) -> Expression:
        return self._combine(terms.ArithmeticOperator.SUBTRACT, self, other)

    def __rsub__(self, other: object) -> Expression:
        return self._combine(terms.ArithmeticOperator.SUBTRACT, other, self)

    def __mul__(self, other: object) -> Expression:
        return self._combine(terms.ArithmeticOperator.MULTIPLY, self, other)

    def __rmul__(self, other: object) -> Expression:
        return self._combine(terms.ArithmeticOperator.MULTIPLY, other, self)

    def __truediv__(self, other: object) -> Expression:
        return self._combine(terms.ArithmeticOperator.DIVIDE, self, other)

    def __rtruediv__(self, other: object) -> Expression:
        return self._combine(terms.ArithmeticOperator.DIVIDE, other, self)

    def __neg__(self) -> Expression:
        return Expression(terms.Negative(self.term), _deeper(self))

    def _compare(self, operator: Operator, *operands: object) -> Clause:
        predicate = Predicate(self.term, operator, tuple(as_term(operand) for operand in operands))
        return Clause(predicate, _deeper(self, *operands) - 1)

    @staticmethod
    def _combine(operator: terms.ArithmeticOperator, left: object, right: object) -> Expression:
        return Expression(terms.Arithmetic(operator, as_term(left), as_term(right)), _deeper(left, right))


def attr(path: str, of: str | None = None) -> Expression:
    """Return the attribute at a dotted path; `of` is the alias of its event in a sequence, or of its table."""
    return Expression(terms.Attribute(path, of))


def param(name: str) -> Expression:
    """Return a template's parameter."""
    if not BARE_NAME.fullmatch(name) or "." in name:
        raise TemplateError(f"a parameter's name is one word, not `{name}`")
    return Expression(terms.Parameter(name))


def all_of(clauses: Iterable[Clause]) -> Clause:
    """Return the conjunction of the clauses; of none, `true`."""
    members = list(clauses)
    return Clause(conjunction([clause.condition for clause in members]), _deeper(*members) - 1)


def any_of(clauses: Iterable[Clause]) -> Clause:
    """Return the disjunction of the clauses; of none, `false`."""
    members = list(clauses)
    return Clause(disjunction([clause.condition for clause in members]), _deeper(*members) - 1)


def duration() -> Expression:
    """Return the duration of a sequence's match so far."""
    return Expression(terms.Elapsed())


def span(amount: int | float, unit: str = "ticks") -> Expression:
    """Return a length of time, such as `span(10, "minutes")`."""
    return Expression(as_span(amount, unit))


def count(over: Expression | None = None) -> Expression:
    """Return the number of events or rows."""
    return Expression(terms.Aggregate(terms.AggregateFunction.COUNT, None if over is None else over.term))


def total(over: Expression) -> Expression:
    """Return the sum."""
    return Expression(terms.Aggregate(terms.AggregateFunction.SUM, over.term))


def avg(over: Expression) -> Expression:
    """Return the average."""
    return Expression(terms.Aggregate(terms.AggregateFunction.AVG, over.term))


def minimum(over: Expression) -> Expression:
    """Return the least value."""
    return Expression(terms.Aggregate(terms.AggregateFunction.MIN, over.term))


def maximum(over: Expression) -> Expression:
    """Return the greatest value."""
    return Expression(terms.Aggregate(terms.AggregateFunction.MAX, over.term))


def as_term(operand: object) -> terms.Term:
    """Return an expression's term, or a value as a constant."""
    return operand.term if isinstance(operand, Expression) else terms.constant(operand)


def _deeper(*parts: object) -> int:
    """Return the depth of an expression with these parts, or raise `LanguageError` if it is too deep."""
    depth = 1 + max((part.depth for part in parts if isinstance(part, (Clause, Expression))), default=0)
    if depth > MAX_OPERATIONS:
        raise LanguageError(f"nested more than {MAX_OPERATIONS} levels deep", text="", offset=0)
    return depth


def _pattern(subject: terms.Term, pattern: str) -> Predicate:
    try:
        return like(subject, pattern, negated=False)
    except ValueError as fault:
        raise LanguageError(f"the pattern cannot be read: {fault}", text=pattern, offset=0) from None


def as_span(amount: object, unit: str) -> terms.Span:
    """Return a length of time, or raise `KindError`."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not math.isfinite(amount):
        raise KindError(f"a length of time is a number of some unit, not {amount!r}")
    if unit not in UNITS:
        raise KindError(f"`{unit}` is not a unit of time; there are {', '.join(terms.SpanUnit)}")
    return terms.Span(amount, UNITS[unit])


def _members(clause: Clause, kind: type[And] | type[Or]) -> tuple[Condition, ...]:
    condition = clause.condition
    return condition.conditions if isinstance(condition, kind) else (condition,)
