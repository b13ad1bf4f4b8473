"""Filters, sequences and views built in Python."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tocsin.language.build.expressions import Clause, Expression, as_span, as_term
from tocsin.language.parsing.parser import canonical
from tocsin.language.printer import default_name
from tocsin.model.conditions import TRUE, Condition
from tocsin.model.queries import Computation, Fold, From, Next, Query, SelectItem, Sequence, Step, Table, View
from tocsin.model.terms import Attribute, Parameter, Span, Star, Term

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
        """Require this of the events matched up to here."""
        last = self.steps[-1]
        both = clause if last.where == TRUE else Clause(last.where) & clause
        return self._with(replace(last, where=both.condition))

    def compute(self, **terms: object) -> StreamBuilder:
        """Compute values under these names."""
        last = self.steps[-1]
        if isinstance(last, Next):
            raise TypeError("`next` takes no `compute`; `from` and `fold` do")
        added = tuple(Computation(name, as_term(term)) for name, term in terms.items())
        return self._with(replace(last, compute=last.compute + added))

    def next(
        self, source: str | StreamBuilder, alias: str | None = None, *, on: Clause | None = None
    ) -> StreamBuilder:
        """Add a step: the first later event of `source` that satisfies `on`."""
        return self._then(Next(_source(source), alias, _condition(on)))

    def fold(
        self,
        source: str | StreamBuilder,
        alias: str | None = None,
        *,
        on: Clause | None = None,
        while_: Clause | None = None,
    ) -> StreamBuilder:
        """Add a step: all later events of `source` that satisfy `on`, while they satisfy `while_`."""
        return self._then(Fold(_source(source), alias, _condition(on), _condition(while_)))

    def within(self, amount: int | float | Expression, unit: str = "ticks") -> StreamBuilder:
        """Limit the duration of the whole sequence."""
        bound = amount.term if isinstance(amount, Expression) else as_span(amount, unit)
        if not isinstance(bound, (Span, Parameter)):
            raise TypeError("`within` takes a length of time, or a parameter")
        return replace(self, bound=bound)

    def select(self, *items: Selected, **named: Selected) -> StreamBuilder:
        """Select these values instead of whole events."""
        return replace(self, selected=self.selected + _items(items, named))

    def publish_as(self, name: str) -> StreamBuilder:
        """Publish the result as a stream of that name."""
        return replace(self, published=name)

    def build(self, *, template: bool = False) -> Query:
        """Return the query, or raise `LanguageError` if the language does not allow it."""
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
        """Take only rows that satisfy this."""
        both = clause if self.view.where == TRUE else Clause(self.view.where) & clause
        return TableBuilder(replace(self.view, where=both.condition))

    def join(self, name: str, alias: str | None = None, *, on: Clause) -> TableBuilder:
        """Join a second table."""
        tables = (*self.view.tables, Table(name, alias))
        return TableBuilder(replace(self.view, tables=tables, on=on.condition))

    def select(self, *items: Selected, **named: Selected) -> TableBuilder:
        """Select these columns or aggregates."""
        return TableBuilder(replace(self.view, select=self.view.select + _items(items, named)))

    def distinct(self, *items: Selected) -> TableBuilder:
        """Select the distinct values of these columns."""
        return replace(self.select(*items), view=replace(self.select(*items).view, distinct=True))

    def build(self, *, template: bool = False) -> Query:
        """Return the query, or raise `LanguageError` if the language does not allow it."""
        return canonical(self.view, template=template)


def stream(source: str | StreamBuilder, alias: str | None = None) -> StreamBuilder:
    """Begin a filter or a sequence over a stream."""
    return StreamBuilder((From(_source(source), alias),))


def table(name: str, alias: str | None = None) -> TableBuilder:
    """Begin a view of a table."""
    return TableBuilder(View((), (Table(name, alias),)))


def _condition(clause: Clause | None) -> Condition:
    return TRUE if clause is None else clause.condition


def _source(source: str | StreamBuilder) -> str | Sequence:
    return source if isinstance(source, str) else source._sequence()  # noqa: SLF001 - of the same class


def _items(items: tuple[Selected, ...], named: dict[str, Selected]) -> tuple[SelectItem, ...]:
    unnamed = tuple(SelectItem(term, default_name(term)) for term in map(_selected_term, items))
    return unnamed + tuple(SelectItem(_selected_term(item), name) for name, item in named.items())


def _selected_term(item: Selected) -> Term:
    if isinstance(item, str):
        return Star() if item == "*" else Attribute(item)
    return item.term
