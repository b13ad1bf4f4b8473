"""The subscriptions that a template's rows make, before they are entered anywhere."""

from __future__ import annotations

from msgspec import Struct

from tocsin.engine.filters import normal_form, only_filters, smaller_form
from tocsin.engine.ids import row_ids
from tocsin.engine.results import SubscribedMany
from tocsin.language import Cnf, Dnf, Template, TemplateRows
from tocsin.language.template.columns import Rows, as_table
from tocsin.model import Filter, Notification
from tocsin.model.errors import TemplateError

__all__ = ["MadeRows"]


class MadeRows(Struct, frozen=True):
    """Subscriptions of one template, by their ids; what is faulty is left out and told by `errors`."""

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
        table = as_table(rows)
        bound = form.bind_many(table, clauses=clauses)
        ids, repeated = row_ids(id_rule, table, bound)
        kept = bound.without([error.row or 0 for error in repeated]) if repeated else bound
        query = only_filters(form.query, "template")
        normalise = smaller_form if isinstance(kept.normal, Cnf) else normal_form
        normal = normalise(query, "template", kept.normal)
        errors = sorted((*bound.errors, *repeated), key=lambda error: error.row or 0)
        return cls(ids, form, query, normal, kept, tuple(errors))

    def told(self, met: tuple[Notification, ...] = ()) -> SubscribedMany:
        """Return what the caller is told."""
        return SubscribedMany(tuple(self.ids), self.errors, tuple(self.rows.never.tolist()), met)
