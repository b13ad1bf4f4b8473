"""Queries built in Python, from the same operators as the text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NoReturn, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tocsin.language.conditions import like
from tocsin.language.parser import canonical
from tocsin.language.printer import condition_text, default_name, term_text
from tocsin.language.terms import MAX_OPERATIONS, UNITS
from tocsin.language.tokens import BARE_NAME
from tocsin.model.conditions import NEGATED, TRUE, And, Condition, Not, Operator, Or, Predicate
from tocsin.model.conditions import all_of as conjunction
from tocsin.model.conditions import any_of as disjunction
from tocsin.model.errors import KindError, LanguageError, TemplateError
from tocsin.model.queries import (
    Computation,
    Filter,
    Fold,
    From,
    Next,
    Query,
    SelectItem,
    Sequence,
    Step,
    Table,
    View,
)
from tocsin.model.terms import (
    Aggregate,
    AggregateFunction,
    Arithmetic,
    ArithmeticOperator,
    Attribute,
    Elapsed,
    Negative,
    Parameter,
    Span,
    SpanUnit,
    Term,
    constant,
)

__all__ = [
    "Clause",
    "Expression",
    "StreamBuilder",
    "TableBuilder",
    "all_of",
    "any_of",
    "attr",
    "avg",
    "count",
    "duration",
    "maximum",
    "minimum",
    "param",
    "span",
    "stream",
    "table",
    "total",
]


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
        if not isinstance(other, Clause):
            return NotImplemented
        return Clause(And((*_members(self, And), *_members(other, And))), _deeper(self, other) - 1)

    def __or__(self, other: Clause) -> Clause:
        if not isinstance(other, Clause):
            return NotImplemented
        return Clause(Or((*_members(self, Or), *_members(other, Or))), _deeper(self, other) - 1)

    def __invert__(self) -> Clause:
        return Clause(Not(self.condition), _deeper(self))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a clause has no truth of its own: join clauses with & and |, not with `and` and `or`"
        )

    def __repr__(self) -> str:
        return f'Clause("{condition_text(self.condition)}")'

    def build(self, *, template: bool = False) -> Query:
        """Return the filter over every stream that this condition makes."""
        return canonical(Filter(self.condition), template=template)


class Expression:
    """A term under construction. Comparing it gives a `Clause`.

    >>> attr("price") > 1.05 * attr("open")
    Clause("price > 1.05 * open")
    """

    __slots__ = ("depth", "term")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, term: Term, depth: int = 0) -> None:
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
        """Ask for a value in the closed interval."""
        return self._compare(Operator.BETWEEN, low, high)

    def is_in(self, members: Iterable[object] | Expression) -> Clause:
        """Ask for one of the members; a parameter stands for a whole list."""
        if isinstance(members, Expression):
            if not isinstance(members.term, Parameter):
                raise TypeError("`is_in` takes a list of constants, or a parameter that stands for one")
            return Clause(Predicate(self.term, Operator.IN, (replace(members.term, many=True),)))
        if isinstance(members, (str, bytes)):
            raise TypeError("`is_in` takes a list of constants; for one text, use ==")
        return self._compare(Operator.IN, *members)

    def like(self, pattern: str | Expression) -> Clause:
        """Ask for a string that fits the pattern, in which % stands for any text and _ for one character."""
        if isinstance(pattern, Expression):
            return self._compare(Operator.LIKE, pattern)
        return Clause(_pattern(self.term, pattern), self.depth)

    def starts_with(self, text: object) -> Clause:
        """Ask for a string that begins with `text`."""
        return self._compare(Operator.STARTS_WITH, text)

    def ends_with(self, text: object) -> Clause:
        """Ask for a string that ends with `text`."""
        return self._compare(Operator.ENDS_WITH, text)

    def contains(self, text: object) -> Clause:
        """Ask for a string that `text` occurs in."""
        return self._compare(Operator.CONTAINS, text)

    def matches(self, pattern: object) -> Clause:
        """Ask for a string in which the regular expression occurs (RE2 syntax)."""
        return self._compare(Operator.REGEX, pattern)

    def is_missing(self) -> Clause:
        """Ask for an event without this attribute."""
        return self._compare(Operator.MISSING)

    def is_present(self) -> Clause:
        """Ask for an event with this attribute."""
        return self._compare(NEGATED[Operator.MISSING])

    def __add__(self, other: object) -> Expression:
        return self._combine(ArithmeticOperator.ADD, self, other)

    def __radd__(self, other: object) -> Expression:
        return self._combine(ArithmeticOperator.ADD, other, self)

    def __sub__(self, other: object) -> Expression:
        return self._combine(ArithmeticOperator.SUBTRACT, self, other)

    def __rsub__(self, other: object) -> Expression:
        return self._combine(ArithmeticOperator.SUBTRACT, other, self)

    def __mul__(self, other: object) -> Expression:
        return self._combine(ArithmeticOperator.MULTIPLY, self, other)

    def __rmul__(self, other: object) -> Expression:
        return self._combine(ArithmeticOperator.MULTIPLY, other, self)

    def __truediv__(self, other: object) -> Expression:
        return self._combine(ArithmeticOperator.DIVIDE, self, other)

    def __rtruediv__(self, other: object) -> Expression:
        return self._combine(ArithmeticOperator.DIVIDE, other, self)

    def __neg__(self) -> Expression:
        return Expression(Negative(self.term), _deeper(self))

    def _compare(self, operator: Operator, *operands: object) -> Clause:
        predicate = Predicate(self.term, operator, tuple(_term(operand) for operand in operands))
        return Clause(predicate, _deeper(self, *operands) - 1)

    @staticmethod
    def _combine(operator: ArithmeticOperator, left: object, right: object) -> Expression:
        return Expression(Arithmetic(operator, _term(left), _term(right)), _deeper(left, right))


Selected: TypeAlias = Expression | str


class StreamBuilder(Struct, frozen=True):
    """A filter or a sequence under construction; `where` and `compute` belong to the step before them.

    >>> from tocsin.language.printer import to_text
    >>> rise = stream("stock", "a").next("stock", "b", on=attr("name", "b") == attr("name", "a"))
    >>> print(to_text(rise.where(attr("price", "b") > 1.05 * attr("price", "a")).within(10, "minutes").build()))
    from stock a
    next stock b on b.name = a.name where b.price > 1.05 * a.price
    within 10 minutes
    """

    steps: tuple[Step, ...]
    bound: Span | Parameter | None = None
    selected: tuple[SelectItem, ...] = ()
    published: str | None = None

    def where(self, clause: Clause) -> StreamBuilder:
        """Ask this of what has matched up to here."""
        last = self.steps[-1]
        both = clause if last.where == TRUE else Clause(last.where) & clause
        return self._with(replace(last, where=both.condition))

    def compute(self, **terms: object) -> StreamBuilder:
        """Compute values under these names."""
        last = self.steps[-1]
        if isinstance(last, Next):
            raise TypeError("`next` computes nothing; `from` and `fold` do")
        added = tuple(Computation(name, _term(term)) for name, term in terms.items())
        return self._with(replace(last, compute=last.compute + added))

    def next(
        self, source: str | StreamBuilder, alias: str | None = None, *, on: Clause | None = None
    ) -> StreamBuilder:
        """Go on with the next event of `source` for which `on` holds."""
        return self._then(Next(_source(source), alias, _condition(on)))

    def fold(
        self,
        source: str | StreamBuilder,
        alias: str | None = None,
        *,
        on: Clause | None = None,
        while_: Clause | None = None,
    ) -> StreamBuilder:
        """Go on again and again, with each next event for which `on` holds, while `while_` does."""
        return self._then(Fold(_source(source), alias, _condition(on), _condition(while_)))

    def within(self, amount: int | float | Expression, unit: str = "ticks") -> StreamBuilder:
        """Bound the duration of the whole."""
        bound = amount.term if isinstance(amount, Expression) else _span(amount, unit)
        if not isinstance(bound, (Span, Parameter)):
            raise TypeError("`within` takes a length of time, or a parameter")
        return replace(self, bound=bound)

    def select(self, *items: Selected, **named: Selected) -> StreamBuilder:
        """Tell these values instead of whole events."""
        return replace(self, selected=self.selected + _items(items, named))

    def publish_as(self, name: str) -> StreamBuilder:
        """Make the result a stream of that name."""
        return replace(self, published=name)

    def build(self, *, template: bool = False) -> Query:
        """Return the query, or raise `LanguageError` where it says what the language does not allow."""
        return canonical(self._sequence(), template=template)

    def _sequence(self) -> Sequence:
        return Sequence(self.steps, self.bound, self.selected, self.published)

    def _then(self, step: Step) -> StreamBuilder:
        return replace(self, steps=(*self.steps, step))

    def _with(self, last: Step) -> StreamBuilder:
        return replace(self, steps=(*self.steps[:-1], last))


class TableBuilder(Struct, frozen=True):
    """A view under construction.

    >>> from tocsin.language.printer import to_text
    >>> to_text(table("stock").where(attr("risk").between(20, 60)).select(minimum(attr("per"))).build())
    'select min(per) from table stock where risk between 20 and 60'
    """

    view: View

    def where(self, clause: Clause) -> TableBuilder:
        """Look only at rows for which this holds."""
        both = clause if self.view.where == TRUE else Clause(self.view.where) & clause
        return TableBuilder(replace(self.view, where=both.condition))

    def join(self, name: str, alias: str | None = None, *, on: Clause) -> TableBuilder:
        """Join a second table."""
        return TableBuilder(
            replace(self.view, tables=(*self.view.tables, Table(name, alias)), on=on.condition)
        )

    def select(self, *items: Selected, **named: Selected) -> TableBuilder:
        """Ask for these columns or aggregates."""
        return TableBuilder(replace(self.view, select=self.view.select + _items(items, named)))

    def distinct(self, *items: Selected) -> TableBuilder:
        """Ask for the different values of these columns."""
        return replace(self.select(*items), view=replace(self.select(*items).view, distinct=True))

    def build(self, *, template: bool = False) -> Query:
        """Return the query, or raise `LanguageError` where it says what the language does not allow."""
        return canonical(self.view, template=template)


def attr(path: str, of: str | None = None) -> Expression:
    """Return the attribute at a dotted path; `of` is the alias of its event in a sequence, or of its table."""
    return Expression(Attribute(path, of))


def param(name: str) -> Expression:
    """Return a template's parameter."""
    if not BARE_NAME.fullmatch(name) or "." in name:
        raise TemplateError(f"a parameter's name is one word, not `{name}`")
    return Expression(Parameter(name))


def all_of(clauses: Iterable[Clause]) -> Clause:
    """Return the condition that all of the clauses make; of none, `true`."""
    given = list(clauses)
    return Clause(conjunction([clause.condition for clause in given]), _deeper(*given) - 1)


def any_of(clauses: Iterable[Clause]) -> Clause:
    """Return the condition that any of the clauses makes; of none, `false`."""
    given = list(clauses)
    return Clause(disjunction([clause.condition for clause in given]), _deeper(*given) - 1)


def duration() -> Expression:
    """Return the duration of what a sequence has matched so far."""
    return Expression(Elapsed())


def span(amount: int | float, unit: str = "ticks") -> Expression:
    """Return a length of time, such as `span(10, "minutes")`."""
    return Expression(_span(amount, unit))


def count(over: Expression | None = None) -> Expression:
    """Return how many there are."""
    return Expression(Aggregate(AggregateFunction.COUNT, None if over is None else over.term))


def total(over: Expression) -> Expression:
    """Return the sum."""
    return Expression(Aggregate(AggregateFunction.SUM, over.term))


def avg(over: Expression) -> Expression:
    """Return the average."""
    return Expression(Aggregate(AggregateFunction.AVG, over.term))


def minimum(over: Expression) -> Expression:
    """Return the least value."""
    return Expression(Aggregate(AggregateFunction.MIN, over.term))


def maximum(over: Expression) -> Expression:
    """Return the greatest value."""
    return Expression(Aggregate(AggregateFunction.MAX, over.term))


def stream(source: str | StreamBuilder, alias: str | None = None) -> StreamBuilder:
    """Begin a filter or a sequence over a stream."""
    return StreamBuilder((From(_source(source), alias),))


def table(name: str, alias: str | None = None) -> TableBuilder:
    """Begin a view of a table."""
    return TableBuilder(View((), (Table(name, alias),)))


def _term(operand: object) -> Term:
    return operand.term if isinstance(operand, Expression) else constant(operand)


def _deeper(*parts: object) -> int:
    """Return how deep an expression of these parts is, or raise `LanguageError` if that is too deep."""
    depth = 1 + max((part.depth for part in parts if isinstance(part, (Clause, Expression))), default=0)
    if depth > MAX_OPERATIONS:
        raise LanguageError(f"nested more than {MAX_OPERATIONS} levels deep", text="", offset=0)
    return depth


def _pattern(subject: Term, pattern: str) -> Predicate:
    try:
        return like(subject, pattern, negated=False)
    except ValueError as fault:
        raise LanguageError(f"the pattern cannot be read: {fault}", text=pattern, offset=0) from None


def _span(amount: object, unit: str) -> Span:
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or not math.isfinite(amount):
        raise KindError(f"a length of time is a number of some unit, not {amount!r}")
    if unit not in UNITS:
        raise KindError(f"`{unit}` is not a unit of time; there are {', '.join(SpanUnit)}")
    return Span(amount, UNITS[unit])


def _condition(clause: Clause | None) -> Condition:
    return TRUE if clause is None else clause.condition


def _source(source: str | StreamBuilder) -> str | Sequence:
    return source if isinstance(source, str) else source._sequence()  # noqa: SLF001 - of the same class


def _items(items: tuple[Selected, ...], named: dict[str, Selected]) -> tuple[SelectItem, ...]:
    plain = [Attribute(item) if isinstance(item, str) else item.term for item in items]
    return tuple(SelectItem(term, default_name(term)) for term in plain) + tuple(
        SelectItem(Attribute(item) if isinstance(item, str) else item.term, name)
        for name, item in named.items()
    )


def _members(clause: Clause, kind: type[And] | type[Or]) -> tuple[Condition, ...]:
    condition = clause.condition
    return condition.conditions if isinstance(condition, kind) else (condition,)
