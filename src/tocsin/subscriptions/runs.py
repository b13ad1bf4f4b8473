"""Subscriptions as runs of those that came one after another: a template with its rows, or texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from tocsin.language import Template, TemplateRows, to_text
from tocsin.language.template.binding import bind_query
from tocsin.language.template.template import bindings_at
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.model.options import SubscriptionOptions, Validity
from tocsin.structures.packed_strings import LazyStrings
from tocsin.subscriptions.queries import QueryStore, StoredTemplate
from tocsin.subscriptions.registry import SubscriptionRegistry
from tocsin.subscriptions.saved_columns import ColumnReader, ColumnWriter


class Run(Struct, frozen=True):
    """Subscriptions in the order they came: the rows of a template with the same options, or texts."""

    ids: LazyStrings
    options: Sequence[SubscriptionOptions]  # of each text; of all rows
    template: StoredTemplate | None
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, positions: IdArray) -> Run:
        """Return the subscriptions at these positions."""
        ids = self.ids.take(positions)
        if self.template is not None:
            return Run(ids, self.options, self.template.take(positions), ())
        options = [self.options[position] for position in positions.tolist()]
        if isinstance(self.texts, LazyStrings):
            return Run(ids, options, None, self.texts.take(positions))
        return Run(ids, options, None, [self.texts[position] for position in positions.tolist()])

    def options_of(self, position: int) -> SubscriptionOptions:
        """Return the options of the subscription at a position."""
        return self.options[0 if self.template is not None else position]

    def text(self, position: int) -> str:
        """Return the text of the subscription at a position; for a row of a template it is printed."""
        if self.template is None:
            return self.texts[position]
        values = bindings_at(self.template.rows.columns, position)
        return to_text(bind_query(self.template.template.query, values))


def runs_of(registry: SubscriptionRegistry, queries: QueryStore) -> list[Run]:
    """Return all subscriptions. Nothing changes the result later."""
    return [run_of(registry, queries, numbers) for numbers in run_numbers(registry, queries)]


def run_numbers(registry: SubscriptionRegistry, queries: QueryStore) -> list[IdArray]:
    """Return the numbers of the subscriptions of each run, in the order they came."""
    numbers = registry.numbers()
    if not len(numbers):
        return []
    batches = queries.template_codes(numbers)
    begins = np.flatnonzero(np.diff(batches, prepend=batches[0] - 1)).tolist()
    return [numbers[a:b] for a, b in zip(begins, [*begins[1:], len(numbers)], strict=True)]


def run_of(registry: SubscriptionRegistry, queries: QueryStore, numbers: IdArray) -> Run:
    """Return the subscriptions with these numbers, which are one run."""
    ids, template = registry.lazy_ids(numbers), queries.template_rows(numbers)
    if template is not None:  # whose rows came in one call, with its options
        return Run(ids, [_options(registry, queries, numbers.item(0))], template, ())
    options = [_options(registry, queries, number) for number in numbers.tolist()]
    return Run(ids, options, None, queries.texts(numbers, to_text))


def _options(registry: SubscriptionRegistry, queries: QueryStore, number: int) -> SubscriptionOptions:
    weight = queries.weights.get(number, 1.0)
    return SubscriptionOptions(
        registry.validity(number), queries.owner(number), weight, queries.witness(number)
    )


def write_run(run: Run, writer: ColumnWriter) -> dict[str, Any]:
    """Return the description of a run, whose columns are written."""
    about: dict[str, Any] = {"ids": writer.strings(run.ids)}
    if run.template is None:
        # Few kinds of options are shared by many; the objects of each kind are one after another.
        kinds: dict[str, int] = {}
        plain = (json.dumps(plain_options(one)) for one in run.options)
        codes = np.array([kinds.setdefault(one, len(kinds)) for one in plain], dtype=np.int32)
        options = {"options": writer.strings(list(kinds)), "which": writer.column(codes)}
        return about | options | {"texts": writer.strings(run.texts)}
    rows = run.template.rows
    return about | {
        "options": plain_options(run.options[0]),
        "template": to_text(run.template.template.query),
        "columns": {name: writer.column(column) for name, column in rows.columns.items()},
        "rows": writer.column(rows.rows),
    }


def read_run(about: Mapping[str, Any], reader: ColumnReader) -> Run:
    """Return the run of such a description; raise `TocsinError` if its columns do not fit."""
    ids = reader.strings(about["ids"])
    if "template" not in about:
        kinds = [options_of_plain(json.loads(one)) for one in reader.strings(about["options"])]
        texts, which = reader.strings(about["texts"]), reader.column(about["which"])
        if not len(ids) == len(texts) == len(which):
            raise TocsinError("the texts, ids and options of subscriptions do not fit")
        return Run(ids, [kinds[kind] for kind in which.tolist()], None, texts)
    template = Template(about["template"])
    columns = {name: reader.column(column) for name, column in about["columns"].items()}
    rows = reader.column(about["rows"])
    if set(columns) != set(template.parameters) or {len(ids)} != {len(rows), *map(len, columns.values())}:
        raise TocsinError("the columns of a template do not fit")
    # The normal form of a filter is the business of whoever compiles the rows.
    stored = StoredTemplate(template, TemplateRows(template.query, None, columns, rows))
    return Run(ids, [options_of_plain(about["options"])], stored, ())


def plain_options(options: SubscriptionOptions) -> list[Any]:
    """Return options as JSON has them."""
    validity, weight = options.validity, options.weight
    plain = dict(weight) if isinstance(weight, Mapping) else weight
    bounds = validity.valid_from, validity.valid_until, validity.is_dated
    return [*bounds, options.owner, plain, options.witness]


def options_of_plain(plain: Sequence[Any]) -> SubscriptionOptions:
    """Return the options that `plain_options` wrote."""
    valid_from, valid_until, is_dated, *rest = plain
    return SubscriptionOptions(Validity(int(valid_from), int(valid_until), bool(is_dated)), *rest)
