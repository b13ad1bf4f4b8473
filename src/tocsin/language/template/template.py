"""A template: a text with parameters, and its rows as columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import timedelta
from functools import cache, partial
from typing import Any, Final, cast

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language.check import QuerySource, built_query
from tocsin.language.normal import Cnf, Dnf, dnf_unless_too_large, to_dnf, to_normal
from tocsin.language.parsing.parser import canonical, parse_template
from tocsin.language.patterns import compile_like, compile_regex
from tocsin.language.printer import to_text
from tocsin.language.template.binding import Bindings, bind_predicate, bind_query
from tocsin.language.template.columns import Column, Faults, Rows, read_columns
from tocsin.language.template.roles import ParameterRole, roles_of
from tocsin.language.template.unsatisfiable import empty_rows
from tocsin.model.conditions import Conjunction
from tocsin.model.errors import LanguageError, NormalFormError, TemplateError
from tocsin.model.queries import Filter, Query
from tocsin.model.values import Value

_TEXTUAL: Final = {ParameterRole.TEXT, ParameterRole.LIKE, ParameterRole.REGEX}
_NUMERIC: Final = {ParameterRole.NUMBER, ParameterRole.SPAN, ParameterRole.WITHIN}
_LONGEST: Final = 2**63 - 1  # the longest duration, in ticks
_COMPILERS: Final[dict[ParameterRole, Callable[[str], object]]] = {
    ParameterRole.LIKE: compile_like,
    ParameterRole.REGEX: compile_regex,
}


class TemplateRows(Struct, frozen=True):
    """Many queries from one template: the query with parameters, and a column of constants for each parameter.

    `normal` is a filter's normal form; sequences and views have none. `rows` are the numbers of the valid rows, in
    the order they were given; `errors` are the errors of faulty rows, and `never` the rows that can never match.
    """

    query: Query
    normal: Dnf | Cnf | None
    columns: Mapping[str, Column]
    rows: NDArray[np.int64]
    errors: tuple[TemplateError, ...] = ()
    never: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def without(self, rows: Collection[int]) -> TemplateRows:
        """Return the queries without the rows of these numbers."""
        return self.take(np.flatnonzero(~np.isin(self.rows, list(rows))))

    def take(self, positions: NDArray[np.int64]) -> TemplateRows:
        """Return the queries at these positions."""
        columns = {name: column[positions] for name, column in self.columns.items()}
        return TemplateRows(self.query, self.normal, columns, self.rows[positions], self.errors, self.never)

    def conjunctions(self, position: int) -> Iterator[Conjunction]:
        """Yield the conjunctions of the filter at `position`, with its constants."""
        values = bindings_at(self.columns, position)
        form = self.form()
        normal = form if isinstance(form, Dnf) else to_dnf(form.condition())
        for conjunction in normal.conjunctions:
            yield tuple(bind_predicate(predicate, values) for predicate in conjunction)

    def form(self) -> Dnf | Cnf:
        """Return the normal form of the filters; raise `TemplateError` for sequences and views."""
        if self.normal is None:
            raise TemplateError("only filters have a normal form; sequences and views have none")
        return self.normal


class Template:
    """A text with parameters such as `:price`, parsed once for all rows of values.

    >>> template = Template("symbol = :s and price > :p")
    >>> template.parameters
    ('s', 'p')
    >>> print(to_text(template.bind({"s": "IBM", "p": 100})))
    symbol = 'IBM' and price > 100
    >>> rows = template.bind_many({"s": ["IBM", "MSFT", None], "p": [100, 25.5, 1]})
    >>> len(rows), str(rows.errors[0])
    (2, 'row 2, parameter `:s`: null is not a value and equals nothing; use `is missing` or `is present` instead')
    """

    def __init__(self, text: QuerySource) -> None:
        written = text if isinstance(text, str) else to_text(built_query(text, template=True))
        self.query, self.parameters = parse_template(written)
        if not self.parameters:
            raise TemplateError("a template needs a parameter, such as `:price`; this text has none")
        self._roles = roles_of(self.query)
        self._many = {name: ParameterRole.MANY in self._roles[name] for name in self.parameters}
        for name in self.parameters:
            if self._many[name] and len(self._roles[name]) > 1:
                raise TemplateError("it is a list after `in` and a single value elsewhere", parameter=name)

    def __repr__(self) -> str:
        return f"Template({to_text(self.query)!r})"

    def bind(self, row: Mapping[str, object]) -> Query:
        """Return the query of one row, or raise `TemplateError`."""
        raw = {name: row[name] for name in self.parameters if name in row}
        spans = {name: value for name, value in raw.items() if isinstance(value, timedelta)}
        for name in spans:
            if not self._roles[name] <= {ParameterRole.SPAN, ParameterRole.WITHIN}:
                raise TemplateError("a timedelta can only be compared with `duration`", parameter=name)
        plain = [name for name in self.parameters if name not in spans]
        columns, _, faults = read_columns([raw], {name: self._many[name] for name in plain})
        if not faults:
            self._check_roles(columns, faults)
        if faults:
            fault = faults[0]
            raise TemplateError(fault.reason, parameter=fault.parameter)
        values: Bindings = {**spans, **bindings_at(columns, 0)}
        try:
            return canonical(bind_query(self.query, values))
        except LanguageError as fault:
            raise TemplateError(f"the language does not allow the text of this row: {fault}") from None

    def bind_many(self, rows: Rows, *, clauses: bool = False) -> TemplateRows:
        """Return the queries of all rows as columns; faulty rows are left out and reported in `errors`.

        `rows` is a mapping of columns, a pandas or Arrow table, or an iterable of mappings. The text is normalised
        once for all rows: to disjunctive normal form, or to the conjunctive one if that is too large; with `clauses`
        to the smaller normal form.
        """
        columns, size, faults = read_columns(rows, self._many)
        self._check_roles(columns, faults)
        kept = np.ones(size, dtype=np.bool_)
        kept[list(faults)] = False
        never = np.zeros(size, dtype=np.bool_)
        normal = self._normal(clauses=clauses)
        if normal is not None and isinstance(self.query, Filter):
            never = empty_rows(_for_bounds(normal, self.query), columns, size) & kept
        kept &= ~never
        if not kept.all():
            columns = {name: column[kept] for name, column in columns.items()}
        return TemplateRows(
            self.query,
            normal,
            columns,
            np.flatnonzero(kept),
            tuple(faults[row] for row in sorted(faults)),
            np.flatnonzero(never),
        )

    def restore_rows(
        self, columns: Mapping[str, Column], rows: NDArray[np.int64], *, clauses: bool = False
    ) -> TemplateRows:
        """Return rows that `bind_many` has checked before, from their columns."""
        return TemplateRows(self.query, self._normal(clauses=clauses), columns, rows)

    def _normal(self, *, clauses: bool) -> Dnf | Cnf | None:
        """Return the normal form of filters, see `bind_many`; None for sequences and views."""
        if not isinstance(self.query, Filter):
            return None
        return (to_normal if clauses else dnf_unless_too_large)(self.query.condition)

    def _check_roles(self, columns: Mapping[str, Column], faults: Faults) -> None:
        """Add an error for each row with a value of a kind that its parameter's role does not allow."""
        for name, column in columns.items():
            roles = self._roles[name]
            if roles & _TEXTUAL:
                _check(name, column, faults, _text_problem)
            if roles & _NUMERIC and column.dtype.kind not in "iuf":
                _check(name, column, faults, _number_problem)
            if ParameterRole.WITHIN in roles:
                _check(name, column, faults, _length_problem)
            for role, compiler in _COMPILERS.items():
                if role in roles:
                    _check(name, column, faults, cache(partial(_pattern_problem, compiler)))


def _for_bounds(normal: Dnf | Cnf, query: Filter) -> Dnf | Cnf:
    """Return the form to find unsatisfiable rows in: the disjunctive one unless it is too large.

    So the same rows are dropped, whichever form is kept.
    """
    if isinstance(normal, Dnf):
        return normal
    try:
        return dnf_unless_too_large(query.condition)
    except NormalFormError:
        return normal


def bindings_at(columns: Mapping[str, Column], row: int) -> dict[str, Value | tuple[Value, ...]]:
    """Return the constants of one row by parameter."""
    return {name: constant_at(column, row) for name, column in columns.items()}


def constant_at(column: Column, row: int) -> Value | tuple[Value, ...]:
    """Return the constant in one row of a column as a Python value."""
    raw = column[row]
    return cast("Value | tuple[Value, ...]", raw.item() if isinstance(raw, np.generic) else raw)


def _check(name: str, column: Column, faults: Faults, problem: Callable[[Any], str | None]) -> None:
    """Add an error for each row without one whose value has a problem."""
    for row, value in enumerate(column.tolist()):
        if row not in faults and (reason := problem(value)) is not None:
            faults[row] = TemplateError(reason, row=row, parameter=name)


def _text_problem(value: object) -> str | None:
    return None if isinstance(value, str) else "its value must be a string"


def _number_problem(value: object) -> str | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return None if is_number else "its value must be a number"


def _length_problem(value: float) -> str | None:
    if 1 <= value <= _LONGEST and value == int(value):
        return None
    return f"`within` takes a whole number of ticks from 1 to {_LONGEST:,}, not {value}"


def _pattern_problem(compiler: Callable[[str], object], pattern: str) -> str | None:
    try:
        compiler(pattern)
    except ValueError as refusal:
        return f"the pattern is refused: {refusal}"
    return None
