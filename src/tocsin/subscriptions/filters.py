"""The compiler of filters: to the normal form that a matcher stores."""

from __future__ import annotations

from collections.abc import Sequence as AbstractSequence
from typing import TypeAlias

from msgspec import Struct

from tocsin.language import Cnf, Dnf, Template, TemplateRows, to_normal
from tocsin.language.normal import dnf_unless_too_large
from tocsin.model import Attribute, Filter, Operator, Predicate, Query, Sequence, literal
from tocsin.model.conditions import Conjunction
from tocsin.model.errors import NormalFormError, SubscriptionError, TemplateError
from tocsin.model.event import STREAM

CompiledFilter: TypeAlias = Dnf | Cnf
"""The condition of a filter in normal form, with its stream as a predicate."""


class FilterCompiler(Struct, frozen=True):
    """Compiles filters for a matcher; one that stores `clauses` gets the smaller of both normal forms.

    Others get the disjunctive form, or the conjunctive one if that is too large.
    """

    clauses: bool = False

    def compile(self, query: Filter, id_: str, normal: Dnf | Cnf | None = None) -> CompiledFilter:
        """Return a filter's normal form, or raise `SubscriptionError`; `normal` is one of its condition, if known."""
        return (smaller_form if self.clauses else disjunctive_form)(query, id_, normal)

    def compile_rows(
        self, template: Template, rows: TemplateRows, _: AbstractSequence[str]
    ) -> tuple[CompiledFilter, list[TemplateError]]:
        """Return the normal form that all rows of a template share; no row fails by itself."""
        query = require_filter(template.query, "template")
        normalise = smaller_form if isinstance(rows.normal, Cnf) else disjunctive_form
        return normalise(query, "template", rows.normal), []


def require_filter(query: Query, id_: str) -> Filter:
    """Return `query` if it is a filter, else raise `SubscriptionError`."""
    if isinstance(query, Filter):
        return query
    shape = "sequence" if isinstance(query, Sequence) else "view"
    raise SubscriptionError(
        f"the text is right, but this is a {shape}; Spark and saved indexes match filters only so far, "
        f"`tocsin.Engine` runs {shape}s too",
        id_,
    )


def disjunctive_form(query: Filter, id_: str, normal: Dnf | Cnf | None = None) -> Dnf | Cnf:
    """Return a filter's disjunctive normal form, or the conjunctive one if that is too large.

    Raise `SubscriptionError` if both are.
    """
    try:
        form = normal if isinstance(normal, Dnf) else dnf_unless_too_large(query.condition)
    except NormalFormError as fault:
        raise SubscriptionError(str(fault), id_) from fault
    return _of_stream(query, form)


def smaller_form(query: Filter, id_: str, normal: Dnf | Cnf | None = None) -> Dnf | Cnf:
    """Return the smaller of a filter's two normal forms, or raise `SubscriptionError`."""
    try:
        form = normal if isinstance(normal, Cnf) else to_normal(query.condition, dnf=normal)
    except NormalFormError as fault:
        raise SubscriptionError(str(fault), id_) from fault
    return _of_stream(query, form)


def _of_stream(query: Filter, form: Dnf | Cnf) -> Dnf | Cnf:
    """Return a normal form with the filter's stream."""
    stream = _stream_predicates(query)
    if not stream:
        return form
    if isinstance(form, Cnf):
        return Cnf((*((predicate,) for predicate in stream), *form.clauses), form.never)
    return Dnf(tuple((*stream, *conjunction) for conjunction in form.conjunctions), form.never)


def _stream_predicates(query: Filter) -> Conjunction:
    """Return the predicate on the stream; none if the filter reads every stream."""
    if query.stream is None:
        return ()
    return (Predicate(Attribute(STREAM), Operator.EQ, (literal(query.stream),)),)
