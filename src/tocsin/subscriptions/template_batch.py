"""Subscriptions from the rows of a template, compiled before they are added anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct

from tocsin.language import Template, TemplateRows
from tocsin.language.template.columns import Rows, as_table
from tocsin.model import Filter, Notification
from tocsin.model.errors import TemplateError
from tocsin.model.subscription import Answer
from tocsin.structures.array_types import Int64s
from tocsin.structures.packed_strings import LazyStrings
from tocsin.subscriptions.results import SubscribedMany
from tocsin.subscriptions.template_ids import hashes_of, row_ids

Compiled_co = TypeVar("Compiled_co", covariant=True)


class CompileRows(Protocol[Compiled_co]):
    """How the rows of a template are compiled: by the compiler of filters, or by a runtime."""

    def __call__(
        self, template: Template, rows: TemplateRows, ids: Sequence[str], /
    ) -> tuple[Compiled_co, list[TemplateError]]:
        """Return the compiled rows, and the errors of rows that cannot be compiled.

        The result covers the rows without an error.
        """


class TemplateBatch(Struct, Generic[Compiled_co], frozen=True):
    """The subscriptions of one template by their ids; faulty rows are left out and reported in `errors`."""

    ids: LazyStrings
    hashes: Int64s  # of the ids
    template: Template
    compiled: Compiled_co
    rows: TemplateRows
    errors: tuple[TemplateError, ...]

    @classmethod
    def of(
        cls,
        template: str | Template,
        rows: Rows,
        id_rule: str | None,
        compile_rows: CompileRows[Compiled_co],
        *,
        clauses: bool = False,
    ) -> TemplateBatch[Compiled_co]:
        """Return the subscriptions of a template's rows.

        `id_rule` names a column or is a pattern; without it, ids are generated. With `clauses`, filters get the smaller of
        both normal forms, else the disjunctive one.
        """
        parsed = template if isinstance(template, Template) else Template(template)
        table = as_table(rows)
        bound = parsed.bind_many(table, clauses=clauses)
        ids, hashes, repeated = row_ids(id_rule, table, bound)
        kept = _without(bound, repeated)
        compiled, faulty = compile_rows(parsed, kept, ids)
        if faulty:
            left = np.flatnonzero(~np.isin(kept.rows, [error.row or 0 for error in faulty]))
            ids, hashes, kept = ids.take(left), hashes[left], kept.take(left)
        errors = sorted((*bound.errors, *repeated, *faulty), key=lambda error: error.row or 0)
        return cls(ids, hashes, parsed, compiled, kept, tuple(errors))

    @classmethod
    def restore(
        cls,
        template: Template,
        rows: TemplateRows,
        ids: LazyStrings,
        compile_rows: CompileRows[Compiled_co],
    ) -> TemplateBatch[Compiled_co]:
        """Return the subscriptions of rows that were in a batch before; raise `TemplateError` if one does not compile."""
        hashes = hashes_of(ids)
        compiled, faulty = compile_rows(template, rows, ids)
        if faulty:
            raise faulty[0]
        return cls(ids, hashes, template, compiled, rows, ())

    def result(
        self, notifications: tuple[Notification, ...] = (), answers: tuple[Answer, ...] = ()
    ) -> SubscribedMany:
        """Return the result of `subscribe_many`."""
        never = tuple(self.rows.never.tolist()) if isinstance(self.template.query, Filter) else ()
        return SubscribedMany(self.ids, self.errors, never, notifications, answers)


def _without(rows: TemplateRows, errors: Iterable[TemplateError]) -> TemplateRows:
    faulty = [error.row or 0 for error in errors]
    return rows.without(faulty) if faulty else rows
