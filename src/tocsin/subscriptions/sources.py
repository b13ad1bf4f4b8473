"""Sets of subscriptions in whatever form they are given, read and compiled one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from tocsin.formats.subscription_files import Entry
from tocsin.language.check import QuerySource, read_query
from tocsin.model import Query, Subscription
from tocsin.model.errors import SubscriptionError, TocsinError
from tocsin.model.options import SubscriptionOptions
from tocsin.subscriptions.filters import CompiledFilter, FilterCompiler, require_filter
from tocsin.subscriptions.options import check_id, read_options

SubscriptionSet: TypeAlias = Mapping[str, QuerySource] | Iterable[Subscription | Entry]
"""Ids mapped to queries, or subscriptions."""

Compiled_co = TypeVar("Compiled_co", covariant=True)


class CompiledSubscription(Struct, Generic[Compiled_co], frozen=True):
    """A subscription that is ready to be added: its query, the same as its runtime executes it, and its options.

    `text` is the text that the query was read from, if it was one.
    """

    query: Query
    compiled: Compiled_co
    options: SubscriptionOptions
    text: str | None = None


class Compile(Protocol[Compiled_co]):
    """The reader and the compiler of subscriptions, for an engine or an index."""

    def __call__(
        self, id_: str, source: QuerySource, options: SubscriptionOptions
    ) -> CompiledSubscription[Compiled_co]:
        """Return the compiled subscription, or raise `TocsinError`."""


def compile_filter(
    id_: str, source: QuerySource, options: SubscriptionOptions
) -> CompiledSubscription[CompiledFilter]:
    """Return a filter in disjunctive normal form; sequences and views are refused."""
    checked = read_query(source)
    query = require_filter(checked.query, id_)
    compiled = FilterCompiler().compile(query, id_, checked.normal)
    return CompiledSubscription(query, compiled, options, source if isinstance(source, str) else None)


def compile_set(
    subscriptions: SubscriptionSet, owner: str, compile_one: Compile[Compiled_co]
) -> tuple[dict[str, CompiledSubscription[Compiled_co]], list[SubscriptionError]]:
    """Return the compiled subscriptions by id, and the errors of all that cannot be compiled."""
    found: dict[str, CompiledSubscription[Compiled_co]] = {}
    errors: list[SubscriptionError] = []
    for id_, source, valid_from, valid_until, weight, witness in _entries(subscriptions):
        try:
            check_id(id_)
            if id_ in found:
                raise SubscriptionError("the set has this id twice", id_)
            options = read_options(valid_from, valid_until, owner, id_, weight=weight, witness=witness)
            found[id_] = compile_one(id_, source, options)
        except SubscriptionError as error:
            errors.append(error)
        except TocsinError as error:
            errors.append(SubscriptionError(str(error), id_))
    return found, errors


def _entries(
    subscriptions: SubscriptionSet,
) -> Iterator[tuple[str, QuerySource, object | None, object | None, object, object]]:
    """Yield the id, query, validity, weight and witness of each subscription."""
    if isinstance(subscriptions, Mapping):
        for id_, source in subscriptions.items():
            yield id_, source, None, None, 1.0, None
    else:
        for one in subscriptions:
            if not isinstance(one, (Subscription, Entry)):
                raise SubscriptionError(
                    f"a set maps ids to queries, or lists `Subscription`s, not {type(one).__name__}"
                )
            yield one.id, one.query, one.valid_from, one.valid_until, one.weight, one.witness
