"""The subscriptions of an engine: in the registry and in the runtimes, always the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.engine.clock import Clock
from tocsin.engine.delivery import Callback, Deliveries
from tocsin.engine.filter_runtime import FilterRuntime
from tocsin.engine.notifications import first_answer
from tocsin.engine.query_runtime import QueryRuntime
from tocsin.language import Template
from tocsin.language.check import QuerySource, read_query
from tocsin.language.sequence_shapes import ShapedSequence, remember_sequence, shaped_sequence
from tocsin.language.template.columns import Column, Rows
from tocsin.language.text_shapes import shaped_text
from tocsin.matching import ConjunctionBatch, IdArray
from tocsin.model import Filter, Notification, Query, Subscription, View
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.errors import SubscriptionError
from tocsin.model.options import ALWAYS, FOREVER, SubscriptionOptions, Validity, saturated_product
from tocsin.model.subscription import Answer
from tocsin.model.ticks import StreamTicks
from tocsin.sequences.runtime import SequenceRuntime
from tocsin.structures.memory import give_back
from tocsin.structures.packed_strings import LazyStrings
from tocsin.subscriptions.queries import QueryStore
from tocsin.subscriptions.registry import SubscriptionRegistry
from tocsin.subscriptions.results import Difference
from tocsin.subscriptions.sources import CompiledSubscription, SubscriptionSet, compile_set
from tocsin.subscriptions.template_batch import TemplateBatch
from tocsin.views.runtime import ViewRuntime

NewSubscriptions: TypeAlias = Mapping[str, CompiledSubscription[Any]]


class _ShapedEntry(NamedTuple):
    """A new sequence of a known shape, under its number and id."""

    number: int
    id: str
    compiled: CompiledSubscription[Any]
    shaped: ShapedSequence


class SubscriptionStore:
    """Adds a subscription to its runtime before the registry, so that a refused one leaves no trace.

    `retention` is how many ticks an expired subscription stays for events that come late. One call at a time is made.
    """

    def __init__(
        self,
        filters: FilterRuntime,
        sequences: SequenceRuntime,
        views: ViewRuntime,
        clock: Clock,
        retention: int,
    ) -> None:
        self.filters = filters
        self.sequences = sequences
        self.views = views
        self.registry = SubscriptionRegistry()
        self.queries = QueryStore()
        self.deliveries = Deliveries(self.registry)
        self._clock = clock
        self._retention = retention
        self.generation = 0
        self.expired = 0
        self.filter_count = 0

    def subscriptions(self, owner: str | None = None) -> list[Subscription]:
        """Return all subscriptions, or those of one owner, in the order they came."""
        if owner is None:
            return [self._subscription(id_, number) for id_, number in self.registry.items()]
        numbers = self.registry.in_order(self.queries.owned_by(owner))
        ids = self.registry.ids_of(numbers)
        return list(map(self._subscription, ids, numbers.tolist()))

    def subscription(self, id_: str) -> Subscription:
        """Return a subscription as it was given."""
        return self._subscription(id_, self.registry.number(id_))

    def _subscription(self, id_: str, number: int) -> Subscription:
        valid_from, valid_until = self.registry.validity(number).bounds()
        weight = self.queries.weights.get(number, 1.0)
        return Subscription(
            id_,
            self.queries.query(number),
            valid_from,
            valid_until,
            dict(weight) if isinstance(weight, Mapping) else weight,
            self.queries.witness(number),
        )

    # compiling

    def compile(
        self, id_: str, source: QuerySource, options: SubscriptionOptions
    ) -> CompiledSubscription[Any]:
        """Return a subscription compiled for its runtime, or raise `TocsinError`."""
        return self.compile_with_warnings(id_, source, options)[0]

    def compile_with_warnings(
        self, id_: str, source: QuerySource, options: SubscriptionOptions
    ) -> tuple[CompiledSubscription[Any], tuple[str, ...]]:
        """Return a subscription compiled for its runtime, and the warnings for its writer; or raise `TocsinError`."""
        text = source if isinstance(source, str) else None
        shaped = None if text is None else shaped_text(text)
        if shaped is not None and not shaped.shape.query.select:
            return CompiledSubscription(None, shaped, options, text), ()
        sequence = None if text is None or shaped is not None else shaped_sequence(text)
        if sequence is not None:
            same = self.sequences.compile_shape(sequence.shape, id_, options)
            return CompiledSubscription(sequence, same, options, text), ()
        checked = read_query(source)
        query = checked.query
        compiled = self._runtime(type(query)).compile(query, id_, options, checked.normal)
        if text is not None and not checked.warnings:
            remember_sequence(text, query)
        return CompiledSubscription(query, compiled, options, text), checked.warnings

    def compile_set(
        self, subscriptions: SubscriptionSet, owner: str
    ) -> tuple[dict[str, CompiledSubscription[Any]], list[SubscriptionError], dict[str, tuple[str, ...]]]:
        """Return the compiled subscriptions of a set by id, the errors of all that cannot be compiled, and warnings by id."""
        warnings: dict[str, tuple[str, ...]] = {}

        def compile_one(
            id_: str, source: QuerySource, options: SubscriptionOptions
        ) -> CompiledSubscription[Any]:
            compiled, found = self.compile_with_warnings(id_, source, options)
            if found:
                warnings[id_] = found
            return compiled

        return *compile_set(subscriptions, owner, compile_one, self.sequences.ticks.zone), warnings

    def compile_template(
        self, template: Template, rows: Rows, id_rule: str | None, options: SubscriptionOptions
    ) -> TemplateBatch[Any]:
        """Return the subscriptions of a template's rows, compiled for their runtime."""
        runtime = self._runtime(type(template.query))
        clauses = runtime is self.filters and self.filters.clauses
        return TemplateBatch.of(
            template, rows, id_rule, partial(runtime.compile_rows, options=options), clauses=clauses
        )

    def rows_read_by(self, query: Query | None) -> int:
        """Return how many rows a new subscription has to read: those of a view's tables."""
        tables = self.views.tables.by_name
        return (
            sum(len(tables[one.name]) for one in query.tables if one.name in tables)
            if isinstance(query, View)
            else 0
        )

    # changing

    def find_replaced(
        self, ids: Sequence[str], hashes: NDArray[np.int64] | None = None, *, replace: bool
    ) -> list[str]:
        """Return the ids that are subscribed already, or raise `SubscriptionError` if they may not be replaced."""
        taken = self.registry.present(ids, hashes)
        if taken and not replace:
            raise already_subscribed(taken[0])
        return taken

    def exchange(self, removed: Sequence[str], new: NewSubscriptions) -> ConjunctionBatch:
        """Replace subscriptions by new ones, and return the new filters; if one is refused, nothing changes."""
        with self._reserve(len(new), removed) as numbers:
            each = list(zip(numbers, new.items(), strict=True))
            added = self.filters.add_each(
                {number: (one.compiled, one.options.weight) for number, (_, one) in each if one.is_filter}
            )
            self._add_others([(number, id_, one) for number, (id_, one) in each if not one.is_filter])
        self._remove(removed)
        for (options, is_text), run in groupby(each, key=_kept_alike):
            together = list(run)
            entered = _array([number for number, _ in together])
            self.registry.enter(entered, [id_ for _, (id_, _) in together], options.validity)
            if is_text:
                texts = [str(one.text) for _, (_, one) in together]
                self.queries.add_texts(entered, texts, options)
                self.filter_count += len(texts)
                continue
            for number, (_, one) in together:
                self.queries.add(number, one.query if one.read is None else one.read, options)
                self.filter_count += one.is_filter
        self._end_change(len(each) + len(removed))
        return added

    def try_exchange(self, removed: Sequence[str], new: NewSubscriptions) -> None:
        """Raise the error with which `exchange` would refuse sequences or views, and change nothing."""
        others = [(id_, one) for id_, one in new.items() if not one.is_filter]
        if others:
            with suppress(_TrialEnd), self._reserve(len(others), removed) as numbers:
                self._add_others(
                    (number, id_, one) for number, (id_, one) in zip(numbers, others, strict=True)
                )
                raise _TrialEnd  # as a refusal does, it undoes what was added

    def add_template(
        self,
        made: TemplateBatch[Any],
        options: SubscriptionOptions,
        removed: Sequence[str],
        callback: Callback | None = None,
    ) -> ConjunctionBatch:
        """Replace subscriptions by those of a template's rows, all with one callback, and return the new filters."""
        with self._reserve(len(made.ids), removed) as reserved:
            numbers = _array(reserved)
            one = CompiledSubscription(made.template.query, made.compiled, options)
            added = self._add(numbers, one, made.rows.columns, "template")
        del reserved  # of a million it takes 40 MB
        self._remove(removed)
        self.registry.enter(numbers, made.ids, options.validity, made.hashes)
        self.queries.add_template(numbers, made.template, made.rows, options)
        if isinstance(made.template.query, Filter):
            self.filter_count += len(numbers)
        self._end_change(len(numbers) + len(removed))
        if callback is not None:
            self.deliveries.add(numbers, callback, self.generation)
        return added

    def deliver(
        self, ids: Sequence[str], callback: Callback | None, notifications: Sequence[Notification] = ()
    ) -> None:
        """Set the callback of subscriptions, if there is one, and give out the first notifications of new ones."""
        if callback is not None:
            numbers = np.fromiter(map(self.registry.number, ids), dtype=np.int64, count=len(ids))
            self.deliveries.add(numbers, callback, self.generation)
        if notifications and self.deliveries.is_wanted:
            self.deliveries.offer(notifications)

    def restore_template(
        self,
        template: Template,
        columns: Mapping[str, Column],
        rows: IdArray,
        ids: LazyStrings,
        options: SubscriptionOptions,
    ) -> None:
        """Add rows of a template that were subscribed before, from their columns."""
        runtime = self._runtime(type(template.query))
        clauses = runtime is self.filters and self.filters.clauses
        bound = template.restore_rows(columns, rows, clauses=clauses)
        made = TemplateBatch.restore(template, bound, ids, partial(runtime.compile_rows, options=options))
        self.add_template(made, options, [])

    def withdraw(self, id_: str) -> None:
        """Remove a subscription, or raise `SubscriptionError` if there is none."""
        self._remove([id_])
        self.generation += 1

    def expire(self) -> None:
        """Remove the subscriptions that have expired."""
        expired = self.registry.expired(self._clock.now() - self._retention)
        if expired:
            self._remove(expired)
            self.expired += len(expired)
            self._end_change(len(expired))

    def difference(self, sought: NewSubscriptions, owner: str) -> Difference:
        """Return what would change if the subscriptions of an owner became those sought."""
        both = self.registry.present(list(sought))
        present = set(both)
        changed = {id_ for id_ in both if not self._is_same(id_, sought[id_])}
        owned = self.registry.ids_of(self.registry.in_order(self.queries.owned_by(owner)))
        return Difference(
            added=tuple(id_ for id_ in sought if id_ not in present),
            changed=tuple(id_ for id_ in both if id_ in changed),
            removed=tuple(id_ for id_ in owned if id_ not in sought),
            unchanged=tuple(id_ for id_ in both if id_ not in changed),
        )

    def _end_change(self, size: int) -> None:
        """Count a change of so many subscriptions, and free the memory that a large one needed for a while."""
        self.generation += 1
        if size >= _MANY:
            give_back()

    # reading

    def is_valid(
        self,
        numbers: IdArray,
        ends: NDArray[np.int64],
        now: NDArray[np.int64] | int = ALWAYS,
        lengths: NDArray[np.int64] | int = 1,
    ) -> NDArray[np.bool_]:
        """Return a mask of the subscriptions that apply to events that ended then, and have not expired by `now`.

        `lengths` are those of a tick of the events' streams, in microseconds.
        """
        # The lowest integer stands for a clock that has seen nothing; subtracting from it would wrap around.
        horizon = np.maximum(now, ALWAYS + self._retention) - self._retention
        moments = None if isinstance(lengths, int) and lengths == 1 else saturated_product(ends, lengths)
        applies = self.registry.is_valid(numbers, ends, moments)
        until = self.registry.valid_until[numbers]
        return np.asarray(applies & ((until == FOREVER) | (horizon < until)))

    def expiry_warning(self, options: SubscriptionOptions) -> tuple[str, ...]:
        """Return a warning if a new subscription has expired already."""
        until = options.validity.valid_until
        if until == FOREVER or until + self._retention > (now := self._clock.now()):
            return ()
        warning = (
            f"it has expired already: it is valid until {_shown(until)}, and the clock says "
            f"{_shown(now)}; to replay events of the past, give the engine an `EventClock`"
        )
        return (warning,)

    def first_answers(self, ids: Iterable[str]) -> tuple[Notification, ...]:
        """Return a notification of the present answer for each new subscription that is a view."""
        numbers = ((id_, self.registry.number(id_)) for id_ in ids)
        return tuple(
            first_answer(id_, self.views.answer(number), self.generation)
            for id_, number in numbers
            if self.queries.kind(number) is View
        )

    def answers(self, ids: Iterable[str]) -> tuple[Answer, ...]:
        """Return the present answers of views."""
        return tuple(self.views.answer(self.registry.number(id_)) for id_ in ids)

    def _runtime(self, kind: type[Query]) -> QueryRuntime[Any]:
        if kind is Filter:
            return self.filters
        return self.sequences if kind is SequenceQuery else self.views

    def _add_others(self, each: Iterable[tuple[int, str, CompiledSubscription[Any]]]) -> None:
        """Add sequences and views to their runtimes; sequences of one shape together, as a template's rows."""
        together: dict[tuple[int, Validity], list[_ShapedEntry]] = {}
        for number, id_, one in each:
            if isinstance(one.read, ShapedSequence):
                key = id(one.compiled), one.options.validity
                together.setdefault(key, []).append(_ShapedEntry(number, id_, one, one.read))
            else:
                self._add(_array([number]), one, {}, id_)
        for group in together.values():
            first = group[0]
            columns = first.shaped.shape.columns([entry.shaped.constants for entry in group])
            self._add(_array([entry.number for entry in group]), first.compiled, columns, first.id)

    def _add(
        self, numbers: IdArray, one: CompiledSubscription[Any], columns: Mapping[str, Any], id_: str
    ) -> ConjunctionBatch:
        """Add subscriptions to their runtime, and return those that are filters."""
        added = self._runtime(one.kind).add(numbers, one.compiled, columns, one.options, id_)
        return added if isinstance(added, ConjunctionBatch) else _NO_FILTERS

    def _is_same(self, id_: str, other: CompiledSubscription[Any]) -> bool:
        """Tell whether the stored subscription equals `other` in query, weight, witness and validity."""
        number, options = self.registry.number(id_), other.options
        return (
            self.queries.is_same(number, other.text, other.read)
            and self.queries.weights.get(number, 1.0) == options.weight
            and self.queries.witness(number) == options.witness
            and self.registry.validity(number) == options.validity
        )

    @contextmanager
    def _reserve(self, count: int, removed: Sequence[str]) -> Iterator[list[int]]:
        """Give numbers to add under; if adding fails, however it does, they are free again.

        The subscriptions that are to be removed close no cycle with those that replace them.
        """
        numbers = self.registry.reserve(count)
        try:
            self.sequences.suspend([self.registry.number(id_) for id_ in removed])
            yield numbers
        except BaseException:
            self._remove_numbers(numbers)  # part of them may have been added
            self.sequences.resume()
            self.registry.release(numbers)
            raise

    def _remove(self, ids: Sequence[str]) -> None:
        """Remove subscriptions from the registry, the queries and the runtimes."""
        if ids:
            numbers = self.registry.remove_all(ids)
            self.deliveries.remove(numbers)
            self.filter_count -= self.queries.remove(numbers)
            self._remove_numbers(numbers.tolist())

    def _remove_numbers(self, numbers: list[int]) -> None:
        self.sequences.remove(numbers)
        self.views.remove(numbers)
        self.filters.remove(numbers)


_MANY: Final = 50_000  # subscriptions whose change needs more than a few MB for a while
_NO_FILTERS: Final = ConjunctionBatch(())


class _TrialEnd(Exception):  # noqa: N818 - it is no error
    """A trial that nothing refused is over."""


def already_subscribed(id_: str) -> SubscriptionError:
    """Return the error for an id that is subscribed and may not be replaced."""
    return SubscriptionError("it is subscribed already; to change it, set `replace`", id_)


def _kept_alike(
    each: tuple[int, tuple[str, CompiledSubscription[Any]]],
) -> tuple[SubscriptionOptions, bool]:
    """Return what the subscriptions have in common that are entered together."""
    _, (_, one) = each
    return one.options, one.stored_text is not None


def _array(numbers: list[int]) -> IdArray:
    return np.array(numbers, dtype=np.int64)


def _shown(time: int) -> int | str:
    return StreamTicks().shown(time, None)
