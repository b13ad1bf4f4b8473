"""Sets of subscriptions in whatever form they are given, read and compiled one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from tocsin.formats.frames import is_table
from tocsin.formats.subscription_files import Entry
from tocsin.language.check import Checked, QuerySource, read_query, read_text
from tocsin.language.sequence_shapes import ShapedSequence
from tocsin.model import Filter, Query, Sequence, Subscription
from tocsin.model.errors import SubscriptionError, TocsinError
from tocsin.model.options import SubscriptionOptions
from tocsin.subscriptions.filters import CompiledFilter, FilterCompiler, require_filter
from tocsin.subscriptions.options import check_id, read_options

SubscriptionSet: TypeAlias = Mapping[str, QuerySource] | Iterable[Subscription | Entry]
"""Ids mapped to queries, or subscriptions."""

Compiled_co = TypeVar("Compiled_co", covariant=True)


class CompiledSubscription(Struct, Generic[Compiled_co], frozen=True):
    """A subscription that is ready to be added: its query, the same as its runtime executes it, and its options.

    `text` is the text that the query was read from, if it was one. A text of a known shape is a filter or a sequence
    whose query is made only where somebody asks for it: then `read` is None for a filter, or the shape and the constants.
    """

    read: Query | ShapedSequence | None
    compiled: Compiled_co
    options: SubscriptionOptions
    text: str | None = None

    @property
    def query(self) -> Query:
        """Return the query."""
        if isinstance(self.read, ShapedSequence):
            return self.read.query()
        return read_text(str(self.text)) if self.read is None else self.read

    @property
    def kind(self) -> type[Query]:
        """Return whether the query is a `Filter`, a `Sequence` or a `View`."""
        if self.read is None:
            return Filter
        return Sequence if isinstance(self.read, ShapedSequence) else type(self.read)

    @property
    def is_filter(self) -> bool:
        """Tell whether the query is a filter."""
        return self.kind is Filter

    @property
    def stored_text(self) -> str | None:
        """Return the text if a store may keep it instead of the query: that of a filter that selects nothing."""
        is_plain = self.read is None or (isinstance(self.read, Filter) and not self.read.select)
        return self.text if is_plain else None


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
    return compile_checked(id_, source, read_query(source), options)


def compile_checked(
    id_: str, source: QuerySource, checked: Checked, options: SubscriptionOptions
) -> CompiledSubscription[CompiledFilter]:
    """Return a filter that has been read from `source` in disjunctive normal form."""
    query = require_filter(checked.query, id_)
    compiled = FilterCompiler().compile(query, id_, checked.normal)
    return CompiledSubscription(query, compiled, options, source if isinstance(source, str) else None)


class GivenSubscription(NamedTuple):
    """A subscription as somebody gave it: nothing is read or checked yet."""

    id: str
    query: QuerySource
    valid_from: object | None = None
    valid_until: object | None = None
    owner: str | None = None
    weight: object = 1.0
    witness: object = None

    def options(self, zone: tzinfo = UTC) -> SubscriptionOptions:
        """Return the options, or raise `SubscriptionError` if they or the id are faulty."""
        check_id(self.id)
        times = self.valid_from, self.valid_until
        return read_options(*times, self.owner, self.id, weight=self.weight, witness=self.witness, zone=zone)


def compile_set(
    subscriptions: SubscriptionSet,
    owner: str | None,
    compile_one: Compile[Compiled_co],
    zone: tzinfo = UTC,
    *,
    own_owners: bool = False,
) -> tuple[dict[str, CompiledSubscription[Compiled_co]], list[SubscriptionError]]:
    """Return the compiled subscriptions by id, and the errors of all that cannot be compiled.

    They are of `owner`; with `own_owners` an entry of a file may name another.
    """
    found: dict[str, CompiledSubscription[Compiled_co]] = {}
    errors: list[SubscriptionError] = []
    for one in given_subscriptions(subscriptions, owner, own_owners=own_owners):
        try:
            options = one.options(zone)
            if one.id in found:
                raise SubscriptionError("the set has this id twice", one.id)
            found[one.id] = compile_one(one.id, one.query, options)
        except SubscriptionError as error:
            errors.append(error)
        except TocsinError as error:
            errors.append(SubscriptionError(str(error), one.id))
    return found, errors


def given_subscriptions(
    subscriptions: SubscriptionSet, owner: str | None, *, own_owners: bool = False
) -> Iterator[GivenSubscription]:
    """Yield each subscription of a set, as its owner's; with `own_owners` an entry of a file may name another."""
    if isinstance(subscriptions, Mapping):
        for id_, source in subscriptions.items():
            yield GivenSubscription(id_, source, owner=owner)
        return
    if is_table(subscriptions) or not isinstance(subscriptions, Iterable):
        raise _no_set(subscriptions)
    for one in subscriptions:
        if not isinstance(one, (Subscription, Entry)):
            raise _no_set(one)
        whose = owner
        if own_owners and isinstance(one, Entry) and one.owner is not None:
            whose = one.owner
        times = one.valid_from, one.valid_until
        yield GivenSubscription(one.id, one.query, *times, whose, one.weight, one.witness)


def _no_set(given: object) -> SubscriptionError:
    text = f"a set maps ids to queries, or lists `Subscription`s, not {type(given).__name__}"
    hint = '; of a frame with ids and texts, `dict(zip(frame["id"], frame["text"]))` is one'
    return SubscriptionError(text + (hint if is_table(given) else ""))
