"""Subscriptions as runs of those that came one after another: a template with its rows, or texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from tocsin.engine.bulk_subscriptions import TOGETHER
from tocsin.engine.saving.columns import ColumnReader, ColumnWriter
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.language import Template, to_text
from tocsin.matching import IdArray
from tocsin.model.errors import SubscriptionError, TocsinError
from tocsin.model.options import SubscriptionOptions, Validity
from tocsin.structures.packed_strings import LazyStrings
from tocsin.subscriptions.queries import StoredTemplate
from tocsin.subscriptions.sources import CompiledSubscription


class Run(Struct, frozen=True):
    """Subscriptions in the order they came: the rows of a template with the same options, or texts."""

    ids: Sequence[str]
    options: Sequence[SubscriptionOptions]  # of each text; of all rows
    template: StoredTemplate | None
    texts: Sequence[str]


def runs_of(store: SubscriptionStore) -> list[Run]:
    """Return all subscriptions; called under the engine's lock. Nothing changes the result later."""
    numbers = store.registry.numbers()
    if not len(numbers):
        return []
    batches = store.queries.template_codes(numbers)
    begins = np.flatnonzero(np.diff(batches, prepend=batches[0] - 1)).tolist()
    return [_run(store, numbers[a:b]) for a, b in zip(begins, [*begins[1:], len(numbers)], strict=True)]


def _run(store: SubscriptionStore, numbers: IdArray) -> Run:
    ids, template = store.registry.lazy_ids(numbers), store.queries.template_rows(numbers)
    if template is not None:  # whose rows came in one call, with its options
        return Run(ids, [_options(store, numbers.item(0))], template, ())
    options = [_options(store, number) for number in numbers.tolist()]
    return Run(ids, options, None, store.queries.texts(numbers, to_text))


def _options(store: SubscriptionStore, number: int) -> SubscriptionOptions:
    queries = store.queries
    weight = queries.weights.get(number, 1.0)
    return SubscriptionOptions(
        store.registry.validity(number), queries.owner(number), weight, queries.witness(number)
    )


def write_run(run: Run, writer: ColumnWriter) -> dict[str, Any]:
    """Return the description of a run, whose columns are written."""
    about: dict[str, Any] = {"ids": writer.strings(run.ids)}
    if run.template is None:
        # Few kinds of options are shared by many; the objects of each kind are one after another.
        kinds: dict[str, int] = {}
        plain = (json.dumps(_plain_options(one)) for one in run.options)
        codes = np.array([kinds.setdefault(one, len(kinds)) for one in plain], dtype=np.int32)
        options = {"options": writer.strings(list(kinds)), "which": writer.column(codes)}
        return about | options | {"texts": writer.strings(run.texts)}
    rows = run.template.rows
    return about | {
        "options": _plain_options(run.options[0]),
        "template": to_text(run.template.template.query),
        "columns": {name: writer.column(column) for name, column in rows.columns.items()},
        "rows": writer.column(rows.rows),
    }


def restore_run(about: Mapping[str, Any], reader: ColumnReader, store: SubscriptionStore) -> None:
    """Add the subscriptions of a run to the store of an engine that nobody uses yet."""
    ids = reader.strings(about["ids"])
    if "template" not in about:
        _restore_texts(ids, about, reader, store)
        return
    template = Template(about["template"])
    columns = {name: reader.column(column) for name, column in about["columns"].items()}
    rows = reader.column(about["rows"])
    if set(columns) != set(template.parameters) or {len(ids)} != {len(rows), *map(len, columns.values())}:
        raise TocsinError("the columns of a template do not fit")
    store.restore_template(template, columns, rows, ids, _options_of_plain(about["options"]))


def _restore_texts(
    ids: LazyStrings, about: Mapping[str, Any], reader: ColumnReader, store: SubscriptionStore
) -> None:
    kinds = [_options_of_plain(json.loads(one)) for one in reader.strings(about["options"])]
    texts, which = reader.strings(about["texts"]), reader.column(about["which"])
    if not len(ids) == len(texts) == len(which):
        raise TocsinError("the texts, ids and options of subscriptions do not fit")
    for begin in range(0, len(ids), TOGETHER):
        end = min(begin + TOGETHER, len(ids))
        part = ids.listed(begin, end), texts.listed(begin, end), which[begin:end].tolist()
        new: dict[str, CompiledSubscription[Any]] = {}
        for id_, text, kind in zip(*part, strict=True):
            try:
                new[id_] = store.compile(id_, text, kinds[kind])
            except TocsinError as error:
                raise (
                    error if isinstance(error, SubscriptionError) else SubscriptionError(str(error), id_)
                ) from None
        store.exchange([], new)


def _plain_options(options: SubscriptionOptions) -> list[Any]:
    validity, weight = options.validity, options.weight
    plain = dict(weight) if isinstance(weight, Mapping) else weight
    bounds = validity.valid_from, validity.valid_until, validity.is_dated
    return [*bounds, options.owner, plain, options.witness]


def _options_of_plain(plain: Sequence[Any]) -> SubscriptionOptions:
    valid_from, valid_until, is_dated, *rest = plain
    return SubscriptionOptions(Validity(int(valid_from), int(valid_until), bool(is_dated)), *rest)
