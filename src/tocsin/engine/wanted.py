"""A set of subscriptions that somebody wants to have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias, TypeVar

from msgspec import Struct

from tocsin.engine.book import ALWAYS, FOREVER, Terms
from tocsin.engine.filters import normal_form, only_filters
from tocsin.formats.subscription_files import Entry
from tocsin.language import Cnf, Dnf
from tocsin.language.check import QuerySource, read_query
from tocsin.matching.ranking import check_weight
from tocsin.model import Filter, Subscription, View
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.errors import KindError, MatcherError, SubscriptionError, TocsinError
from tocsin.model.values import read_time
from tocsin.sequences.compilation import CompiledSequence
from tocsin.subscriptions.options import is_encodable
from tocsin.views.compiled import CompiledView

Read = TypeVar("Read", covariant=True)  # noqa: PLC0105 - what is read is called what it is

WantedSet: TypeAlias = Mapping[str, QuerySource] | Iterable[Subscription | Entry]


class Wanted(Struct, frozen=True):
    """One filter as it should be: what it asks, also in normal form, and for how long.

    `text` is what it was read from, if that was a text.
    """

    query: Filter
    normal: Dnf | Cnf
    terms: Terms
    text: str | None = None


class WantedSequence(Struct, frozen=True):
    """One sequence as it should be: what it asks, ready to be run where a tick is so many microseconds."""

    query: SequenceQuery
    prepared: CompiledSequence
    tick: int
    terms: Terms


class WantedView(Struct, frozen=True):
    """One view as it should be: what it asks, and how it is followed."""

    query: View
    plan: CompiledView
    terms: Terms


class Reading(Protocol[Read]):
    """How a subscription is read, for whoever is to hold it."""

    def __call__(self, id_: str, source: QuerySource, terms: Terms) -> Read:
        """Return the subscription with this id as it should be, or raise `TocsinError`."""


def read_terms(
    valid_from: object | None,
    valid_until: object | None,
    owner: str | None,
    id_: str | None = None,
    *,
    weight: object = 1.0,
    witness: object = None,
) -> Terms:
    """Return how long a subscription applies, whose it is, what it weighs and tells, or raise `SubscriptionError`."""
    try:
        begin = ALWAYS if valid_from is None else read_time(valid_from)
        end = FOREVER if valid_until is None else read_time(valid_until)
    except KindError as fault:
        raise SubscriptionError(f"its validity cannot be read: {fault}", id_) from None
    try:
        check_weight(weight)
    except MatcherError as fault:
        raise SubscriptionError(str(fault), id_) from None
    # A copy: what is done to the mapping later does not reach what is subscribed.
    kept = dict(weight) if isinstance(weight, Mapping) else weight
    if witness not in (None, "full"):
        raise SubscriptionError(
            f'a witness is "full", or the first and last events, None, not {witness!r}', id_
        )
    return Terms(begin, end, owner, kept, witness)  # type: ignore[arg-type]


def check_id(id_: object) -> None:
    """Raise `SubscriptionError` unless `id_` can name a subscription."""
    if not isinstance(id_, str) or not id_:
        raise SubscriptionError(f"an id is a string that is not empty, not {id_!r}")
    if not is_encodable(id_):
        raise SubscriptionError(f"the id {id_!r} has half of a character, and cannot be written as UTF-8")


def read_filter(id_: str, source: QuerySource, terms: Terms) -> Wanted:
    """Return a filter with its disjunctive normal form; sequences and views are refused."""
    checked = read_query(source)
    query = only_filters(checked.query, id_)
    text = source if isinstance(source, str) else None
    return Wanted(query, normal_form(query, id_, checked.normal), terms, text)


def read_wanted(
    wanted: WantedSet, owner: str, read: Reading[Read]
) -> tuple[dict[str, Read], list[SubscriptionError]]:
    """Return the subscriptions by id, each as it is read, and every error there is among them."""
    found: dict[str, Read] = {}
    errors: list[SubscriptionError] = []
    for id_, source, begin, end, weight, witness in _each(wanted):
        try:
            check_id(id_)
            if id_ in found:
                raise SubscriptionError("it is wanted twice", id_)
            found[id_] = read(id_, source, read_terms(begin, end, owner, id_, weight=weight, witness=witness))
        except SubscriptionError as error:
            errors.append(error)
        except TocsinError as error:
            errors.append(SubscriptionError(str(error), id_))
    return found, errors


def _each(
    wanted: WantedSet,
) -> Iterator[tuple[str, QuerySource, object | None, object | None, object, object]]:
    if isinstance(wanted, Mapping):
        for id_, source in wanted.items():
            yield id_, source, None, None, 1.0, None
    else:
        for one in wanted:
            if not isinstance(one, (Subscription, Entry)):
                raise SubscriptionError(
                    f"a set maps ids to queries, or lists `Subscription`s, not {type(one).__name__}"
                )
            yield one.id, one.query, one.valid_from, one.valid_until, one.weight, one.witness
