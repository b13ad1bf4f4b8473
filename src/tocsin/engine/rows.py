"""The subscriptions that a template's rows make, before they are entered anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from tocsin.engine.filters import normal_form, only_filters, smaller_form
from tocsin.language import Cnf, Dnf, Template, TemplateRows
from tocsin.language.parsing.parser import canonical
from tocsin.language.template.binding import bind_query
from tocsin.language.template.columns import Column, Rows, as_table
from tocsin.language.template.template import bindings_at
from tocsin.model import Filter, Notification, Sequence, View
from tocsin.model.errors import TemplateError, TocsinError
from tocsin.model.subscription import Answer
from tocsin.sequences.compilation import CompiledSequence
from tocsin.subscriptions.results import SubscribedMany
from tocsin.subscriptions.template_ids import row_ids
from tocsin.views.compiled import CompiledView

Prepare: TypeAlias = Callable[[Sequence, str], tuple[CompiledSequence, int]]
"""Makes a sequence ready, and says how long a tick of its streams is."""


Planning: TypeAlias = Callable[[View, str, Mapping[str, Column]], CompiledView]
"""Says how a view is followed, given the values of its parameters."""


class MadeRows(Struct, frozen=True):
    """Filters of one template, by their ids; what is faulty is left out and told by `errors`."""

    ids: list[str]
    template: Template
    query: Filter
    normal: Dnf | Cnf
    rows: TemplateRows
    errors: tuple[TemplateError, ...]

    @classmethod
    def of(
        cls, template: str | Template, rows: Rows, id_rule: str | None, *, clauses: bool = False
    ) -> MadeRows:
        """Return what a template and its rows make; `id_rule` is a column, a pattern, or None for made ids.

        With `clauses` the normal form is the smaller one, else it is the disjunctive one.
        """
        form = template if isinstance(template, Template) else Template(template)
        query = only_filters(form.query, "template")
        ids, kept, errors = _made(form, rows, id_rule, clauses=clauses)
        normalise = smaller_form if isinstance(kept.normal, Cnf) else normal_form
        return cls(ids, form, query, normalise(query, "template", kept.normal), kept, errors)

    def told(self, met: tuple[Notification, ...] = ()) -> SubscribedMany:
        """Return what the caller is told."""
        return SubscribedMany(tuple(self.ids), self.errors, tuple(self.rows.never.tolist()), met)


class MadeSequences(Struct, frozen=True):
    """Sequences of one template, by their ids; what is faulty is left out and told by `errors`.

    They are made ready all at once, or, if a parameter stands where that cannot be, `each` by itself.
    """

    ids: list[str]
    template: Template
    prepared: CompiledSequence
    tick: int
    each: tuple[CompiledSequence, ...] | None
    rows: TemplateRows
    errors: tuple[TemplateError, ...]

    @classmethod
    def of(cls, template: Template, rows: Rows, id_rule: str | None, prepare: Prepare) -> MadeSequences:
        """Return what a template of sequences and its rows make."""
        assert isinstance(template.query, Sequence)  # noqa: S101 - the caller asked
        prepared, tick = prepare(template.query, "template")
        ids, kept, errors = _made(template, rows, id_rule)
        if not prepared.automaton.by_row:
            return cls(ids, template, prepared, tick, None, kept, errors)
        ready: list[CompiledSequence] = []
        faulty: list[TemplateError] = []
        for place, row in enumerate(kept.rows.tolist()):
            try:
                bound = canonical(bind_query(template.query, bindings_at(kept.columns, place)))
                assert isinstance(bound, Sequence)  # noqa: S101 - a template stays what it is
                ready.append(prepare(bound, ids[place])[0])
            except TocsinError as fault:
                faulty.append(TemplateError(str(fault), row=row))
        without = {fault.row for fault in faulty}
        ids = [name for name, row in zip(ids, kept.rows.tolist(), strict=True) if row not in without]
        kept = kept.without([fault.row or 0 for fault in faulty]) if faulty else kept
        return cls(ids, template, prepared, tick, tuple(ready), kept, _sorted((*errors, *faulty)))

    def told(self) -> SubscribedMany:
        """Return what the caller is told."""
        return SubscribedMany(tuple(self.ids), self.errors)


class MadeViews(Struct, frozen=True):
    """Views of one template, by their ids; what is faulty is left out and told by `errors`."""

    ids: list[str]
    template: Template
    plan: CompiledView
    rows: TemplateRows
    errors: tuple[TemplateError, ...]

    @classmethod
    def of(cls, template: Template, rows: Rows, id_rule: str | None, plan: Planning) -> MadeViews:
        """Return what a template of views and its rows make."""
        assert isinstance(template.query, View)  # noqa: S101 - the caller asked
        ids, kept, errors = _made(template, rows, id_rule)
        return cls(ids, template, plan(template.query, "template", kept.columns), kept, errors)

    def told(self, answers: tuple[Answer, ...]) -> SubscribedMany:
        """Return what the caller is told."""
        return SubscribedMany(tuple(self.ids), self.errors, answers=answers)


def _made(
    form: Template, rows: Rows, id_rule: str | None, *, clauses: bool = False
) -> tuple[list[str], TemplateRows, tuple[TemplateError, ...]]:
    """Return the ids and rows that are kept, and the errors of the others."""
    table = as_table(rows)
    bound = form.bind_many(table, clauses=clauses)
    ids, repeated = row_ids(id_rule, table, bound)
    kept = bound.without([error.row or 0 for error in repeated]) if repeated else bound
    return ids, kept, _sorted((*bound.errors, *repeated))


def _sorted(errors: Iterable[TemplateError]) -> tuple[TemplateError, ...]:
    return tuple(sorted(errors, key=lambda error: error.row or 0))
