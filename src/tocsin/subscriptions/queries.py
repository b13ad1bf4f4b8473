"""The queries of subscriptions by number, and whose they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from msgspec import Struct

from tocsin.language import Template, TemplateRows
from tocsin.language.check import read_text
from tocsin.language.sequence_shapes import ShapedSequence
from tocsin.language.template.binding import bind_query
from tocsin.language.template.columns import Column
from tocsin.language.template.template import bindings_at
from tocsin.language.text_shapes import one_of_each_shape
from tocsin.matching import IdArray
from tocsin.model import Filter, Query
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.options import SubscriptionOptions
from tocsin.model.queries import SelectItem
from tocsin.structures.array_types import Bools, Int32s
from tocsin.structures.batch_rows import BatchRows
from tocsin.structures.growth import roomier
from tocsin.structures.interning import InterningTable
from tocsin.structures.packed_strings import PackedStrings

_NOBODY: Final = -1
_NO_NUMBERS: Final = np.empty(0, dtype=np.int64)
_READ: Final = 4096  # texts whose queries are at hand
_FEW: Final = 64  # texts up to which each is kept as a string


class StoredTemplate(Struct, eq=False, frozen=True):
    """The rows of one template."""

    template: Template
    rows: TemplateRows

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, positions: IdArray, /) -> StoredTemplate:
        """Return the rows at these positions."""
        return StoredTemplate(self.template, self.rows.take(positions))


class _StoredRow(NamedTuple):
    stored: StoredTemplate
    row: int


class QueryStore:
    """The query, owner, weight and witness option of each subscription, by number.

    The rows of a template share its query; a row's own query is bound only where somebody asks for it. Filters that came
    as texts, and select nothing, are kept as texts, which take a tenth of a query's memory, and are read again. Sequences of
    a known shape are kept as their constants.
    """

    def __init__(self) -> None:
        self._sources: list[
            Query | ShapedSequence | str | None
        ] = []  # [number] those that came one by one; it may be shorter
        self._batches: BatchRows[StoredTemplate | PackedStrings] = BatchRows()  # the others
        self._owners: InterningTable[str] = InterningTable()
        self._owner_codes: Int32s = np.full(0, _NOBODY, dtype=np.int32)  # [number]; it may be shorter
        self.weights: dict[int, float | Mapping[str, float]] = {}  # other than 1
        self.selecting = 0  # filters with a select list
        self._full_witness: set[int] = set()  # sequences that report every event of their steps

    def query(self, number: int) -> Query:
        """Return the query of a subscription."""
        query, values = self.unbound(number)
        return query if values is None else bind_query(query, values)

    def unbound(self, number: int) -> tuple[Query, dict[str, Any] | None]:
        """Return a query; for a template's row, the template's query and the values of its parameters."""
        found = self._source(number)
        if isinstance(found, str):
            return _read_again(found), None
        if isinstance(found, _StoredRow):
            stored, row = found
            return stored.template.query, bindings_at(stored.rows.columns, row)
        return found.query() if isinstance(found, ShapedSequence) else found, None

    def shapes(self) -> Iterator[Query]:
        """Yield the queries; of those that differ in their constants only, and of a template's rows, one."""
        texts = [one for one in self._sources if isinstance(one, str)]
        shapes = {one.shape: one for one in self._sources if isinstance(one, ShapedSequence)}
        yield from (one.query() for one in shapes.values())
        for source in self._sources:
            if source is not None and not isinstance(source, (str, ShapedSequence)):
                yield source
        for batch in self._batches.batches():
            if isinstance(batch, StoredTemplate):
                yield batch.template.query
            else:
                texts += one_of_each_shape(batch)
        yield from map(_read_again, one_of_each_shape(texts))

    def kind(self, number: int) -> type[Query]:
        """Return whether a subscription is a `Filter`, a `Sequence` or a `View`."""
        found = self._source(number)
        if isinstance(found, str):
            return Filter
        if isinstance(found, ShapedSequence):
            return SequenceQuery
        return type(found.stored.template.query if isinstance(found, _StoredRow) else found)

    def selects_of(self, numbers: IdArray) -> list[tuple[SelectItem, ...]]:
        """Return the select lists of filters; empty for those that select the whole event."""
        return list(map(self._select, numbers.tolist()))

    def is_same(self, number: int, text: str | None, query: Query | ShapedSequence | None) -> bool:
        """Tell whether a subscription has this query, given as what it is or as a text that says it."""
        source = self._source(number)
        if isinstance(source, str) and source == text:
            return True
        if isinstance(query, ShapedSequence):
            if isinstance(source, ShapedSequence) and source.shape is query.shape:
                return source.constants == query.constants
            query = query.query()
        return self.query(number) == (read_text(str(text)) if query is None else query)

    def is_same_row(self, numbers: IdArray, template: Template, columns: Mapping[str, Column]) -> Bools:
        """Tell which subscriptions came with this template and the constants at their position in `columns`."""
        found = np.zeros(len(numbers), dtype=np.bool_)
        batched = np.flatnonzero(self._batches.has(numbers))
        for batch, positions, rows in self._batches.group(numbers[batched]):
            if isinstance(batch, StoredTemplate) and batch.template.query == template.query:
                at = batched[positions]
                found[at] = True
                for name, column in batch.rows.columns.items():
                    found[at] &= _are_equal(column[rows], columns[name][at])
        return found

    def stream(self, number: int) -> str | None:
        """Return the stream that a filter reads; None if it reads every stream."""
        query, _ = self.unbound(number)
        return query.stream if isinstance(query, Filter) else None

    def witness(self, number: int) -> Literal["full"] | None:
        """Return whether a sequence reports every event of its steps."""
        return "full" if number in self._full_witness else None

    @property
    def has_options(self) -> bool:
        """Tell whether any subscription has an owner, a weight or a witness option."""
        return bool(self._owners.codes or self.weights or self._full_witness)

    def with_full_witness(self) -> IdArray:
        """Return the numbers of the sequences that report every event of their steps."""
        return np.fromiter(self._full_witness, dtype=np.int64, count=len(self._full_witness))

    def owner(self, number: int) -> str | None:
        """Return the owner of a subscription."""
        codes = self._owner_codes
        code = codes.item(number) if number < len(codes) else _NOBODY
        return None if code == _NOBODY else self._owners.value(code)

    def owned_by(self, owner: str) -> IdArray:
        """Return the numbers of an owner's subscriptions, ascending."""
        code = self._owners.codes.get(owner)
        return np.flatnonzero(self._owner_codes == code) if code is not None else _NO_NUMBERS

    # in bulk, for those who store subscriptions elsewhere

    def template_codes(self, numbers: IdArray) -> Int32s:
        """Return a code of the batch of rows that each subscription is one of; -1 for those that did not come with a template."""
        codes = self._batches.codes(numbers)
        for code in np.unique(codes[codes >= 0]).tolist():
            of = codes == code
            if isinstance(self._batches.find(numbers[of].item(0))[0], PackedStrings):
                codes[of] = -1
        return codes

    def template_rows(self, numbers: IdArray) -> StoredTemplate | None:
        """Return the rows of subscriptions that came with one template; None if they did not come with any."""
        if numbers.item(0) not in self._batches:
            return None
        batch = self._batches.find(numbers.item(0))[0]
        if isinstance(batch, PackedStrings):
            return None
        found = self._batches.rows_of(numbers)
        assert isinstance(found, StoredTemplate)  # noqa: S101 - as the one that it is of
        return found

    def texts(self, numbers: IdArray, to_text: Callable[[Query], str]) -> Sequence[str]:
        """Return the texts of subscriptions, which `to_text` writes for those that did not come as such."""
        codes = self._batches.codes(numbers)
        if codes[0] >= 0 and (codes == codes[0]).all():
            found = self._batches.rows_of(numbers)
            if isinstance(found, PackedStrings):
                return found
        sources = map(self._source, numbers.tolist())
        return [
            source if isinstance(source, str) else to_text(self.query(number))
            for number, source in zip(numbers.tolist(), sources, strict=True)
        ]

    def sources(self, numbers: IdArray) -> list[Query | ShapedSequence | str]:
        """Return the queries of subscriptions, as they are stored, that came without a template."""
        found = map(self._source, numbers.tolist())
        return [one for one in found if not isinstance(one, _StoredRow)]

    def add(self, number: int, source: Query | ShapedSequence | str, options: SubscriptionOptions) -> None:
        """Store the query of one subscription, or the text of a filter that selects nothing."""
        self._sources.extend([None] * (number + 1 - len(self._sources)))
        self._sources[number] = source
        self.selecting += not isinstance(source, str) and _selects(source)
        if options.owner is not None or options.weight != 1.0 or options.witness is not None:
            self._add_options(np.array([number]), options)

    def add_texts(self, numbers: IdArray, texts: Sequence[str], options: SubscriptionOptions) -> None:
        """Store the texts of filters that select nothing."""
        if len(texts) <= _FEW:
            for number, text in zip(numbers.tolist(), texts, strict=True):
                self.add(number, text, options)
        else:
            self._batches.add(numbers, PackedStrings(texts))
            self._add_options(numbers, options)

    def add_template(
        self, numbers: IdArray, template: Template, rows: TemplateRows, options: SubscriptionOptions
    ) -> None:
        """Store the queries of a template's rows."""
        self.selecting += len(numbers) * _selects(template.query)
        self._batches.add(numbers, StoredTemplate(template, rows))
        self._add_options(numbers, options)

    def remove(self, numbers: IdArray) -> int:
        """Remove the queries, options and owners of subscriptions; return how many were filters."""
        if len(numbers) <= _FEW:
            return sum(map(self._remove_one, numbers.tolist()))
        is_batched = self._batches.has(numbers)
        filters = 0
        for batch, positions, _ in self._batches.group(batched := numbers[is_batched]):
            query = None if isinstance(batch, PackedStrings) else batch.template.query
            filters += len(positions) * (query is None or isinstance(query, Filter))
            self.selecting -= len(positions) * (query is not None and _selects(query))
        self._batches.remove_all(batched)
        for number in numbers[~is_batched].tolist():
            source, self._sources[number] = self._sources[number], None
            filters += isinstance(source, (str, Filter))
            self.selecting -= isinstance(source, Filter) and _selects(source)
        self._full_witness.difference_update(numbers.tolist())
        if self.weights:
            for number in numbers.tolist():
                self.weights.pop(number, None)
        owned = numbers[numbers < len(self._owner_codes)]
        owned = owned[self._owner_codes[owned] != _NOBODY]
        self._owners.release(self._owner_codes[owned].astype(np.int64))
        self._owner_codes[owned] = _NOBODY
        return filters

    def _remove_one(self, number: int) -> bool:
        """Remove the query, options and owner of a subscription; return whether it was a filter."""
        kind = self.kind(number)
        if number in self._batches:
            batch, _ = self._batches.find(number)
            self.selecting -= not isinstance(batch, PackedStrings) and _selects(batch.template.query)
            self._batches.remove(number)
        else:
            source, self._sources[number] = self._sources[number], None
            self.selecting -= isinstance(source, Filter) and _selects(source)
        self._full_witness.discard(number)
        self.weights.pop(number, None)
        if self.owner(number) is not None:
            self._owners.release_one(self._owner_codes.item(number))
            self._owner_codes[number] = _NOBODY
        return kind is Filter

    def _source(self, number: int) -> Query | ShapedSequence | str | _StoredRow:
        """Return a query, a sequence by its shape, a text, or a template and its row."""
        if number in self._batches:
            batch, row = self._batches.find(number)
            return batch.at(row) if isinstance(batch, PackedStrings) else _StoredRow(batch, row)
        source = self._sources[number]
        assert source is not None  # noqa: S101 - the number is of a subscription
        return source

    def _select(self, number: int) -> tuple[SelectItem, ...]:
        # Binding costs more than the rest of a notification, and a text selects nothing.
        if number in self._batches:
            batch, _ = self._batches.find(number)
            if isinstance(batch, PackedStrings) or not _selects(batch.template.query):
                return ()
            query = self.query(number)
        else:
            source = self._sources[number]
            if source is None or isinstance(source, (str, ShapedSequence)):
                return ()
            query = source
        return query.select if isinstance(query, Filter) else ()

    def _add_options(self, numbers: IdArray, options: SubscriptionOptions) -> None:
        """Store the weight, the witness option and the owner of new subscriptions."""
        if options.weight != 1.0:
            self.weights.update(dict.fromkeys(numbers.tolist(), options.weight))
        if options.witness is not None:
            self._full_witness.update(numbers.tolist())
        if options.owner is not None and len(numbers):
            known, needed = self._owner_codes, int(numbers.max()) + 1
            if needed > len(known):
                self._owner_codes = np.full(roomier(len(known), needed), _NOBODY, dtype=np.int32)
                self._owner_codes[: len(known)] = known
            self._owner_codes[numbers] = self._owners.acquire(options.owner, len(numbers))


_read_again = lru_cache(maxsize=_READ)(read_text)


def _are_equal(some: Column, others: Column) -> Bools:
    """Tell which constants are equal as the language compares them: 1 and 1.0 are, 1 and true are not."""
    if some.dtype == others.dtype and some.dtype.kind != "O":
        return np.asarray(some == others, dtype=np.bool_)
    pairs = zip(some.tolist(), others.tolist(), strict=True)
    equal = (repr(a) == repr(b) if type(a) in (tuple, bool) or type(b) is bool else a == b for a, b in pairs)
    return np.fromiter(equal, dtype=np.bool_, count=len(some))


def _selects(query: Query | ShapedSequence) -> bool:
    """Tell whether a query is a filter with a select list."""
    return isinstance(query, Filter) and bool(query.select)
