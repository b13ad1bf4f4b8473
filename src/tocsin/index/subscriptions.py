"""An index of subscriptions in a folder: changed by one process, matched with by any number of others."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Literal
from uuid import uuid4

import numpy as np
from msgspec.structs import replace as replaced

from tocsin.formats.event_reader import now_in_microseconds
from tocsin.index.additions import WaitingFilters
from tocsin.index.contents import Contents, IndexPart, save_shard, written
from tocsin.index.generations import FORMAT, Generation, Generations, ShardEntry
from tocsin.index.placement import Placement, Routes
from tocsin.index.router import open_routes, save_router
from tocsin.index.shard import ShardDraft
from tocsin.index.shard_registry import digest_of, digests_of
from tocsin.index.stateful import read_stateful
from tocsin.index.stateful_contents import GivenText, StatefulContents
from tocsin.index.storage import storage_of
from tocsin.language import Template, to_text
from tocsin.language.check import QuerySource
from tocsin.language.template.columns import Rows
from tocsin.matching import IdArray
from tocsin.matching.ranking import Weight
from tocsin.model import Filter
from tocsin.model.errors import ApplyError, SavedIndexError, SubscriptionError, TocsinError
from tocsin.model.options import SubscriptionOptions
from tocsin.model.ticks import Tick
from tocsin.subscriptions.filters import FilterCompiler
from tocsin.subscriptions.options import check_id, read_options
from tocsin.subscriptions.results import Difference, SubscribedMany
from tocsin.subscriptions.sources import CompiledSubscription, SubscriptionSet, compile_set
from tocsin.subscriptions.template_batch import TemplateBatch


class SubscriptionIndex:
    """Subscriptions in a folder, to be changed and published as generations.

    Changes are buffered until `publish`, which writes them and makes them current atomically: a process that
    matches with the index sees either the previous generation or the new one. `shards` is the number of parts of
    a new index; a process that matches needs only one of them at a time. `matcher` names the matcher; by default,
    brute force is used while there is little to do.

    `folder` is a path that all processes can read, or a URI such as `s3a://bucket/index`. Only one process at a
    time may change an index; if two do, the second one's `publish` is refused.

    Filters are spread over the shards. Sequences and views are stored as they were given, checked as an engine checks them;
    the tables of views, and streams with ticks other than microseconds, are declared with `table` and `stream`. Of a filter the
    index keeps no owner and no weight.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        shards: int | None = None,
        matcher: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if shards is not None and shards < 1:
            raise SavedIndexError(f"an index has one shard or more, not {shards}", os.fspath(folder))
        self.generations = Generations(storage_of(folder))
        home = self.generations.home()
        if home is None:
            if self.generations.storage.names(""):
                raise self.generations.fault("this folder is neither empty nor an index; choose another")
            home = self.generations.found(shards or 1, matcher)
        if shards is not None and shards != home.shards:
            raise self.generations.fault(
                f"it has {home.shards} shard{'s' if home.shards > 1 else ''}, not {shards}; to change that, make a new one"
            )
        self.shards = home.shards
        self.generation = 0
        self._contents = Contents(self.shards, matcher or home.matcher, options)
        self._stateful = StatefulContents()
        self._entries: list[ShardEntry] = []
        self._router: str | None = None
        self._routed = 0  # routes that the saved router has
        if current := self.generations.current():
            self._load(current)

    # streams and tables

    def table(self, name: str, *, key: str | Sequence[str]) -> None:
        """Declare a stream to be a table that views read; `key` names the attribute that identifies rows, or several."""
        self._stateful.declare_table(name, key)

    def stream(self, name: str, *, tick: Tick) -> None:
        """Set how long a tick of a stream is: a text such as `"1 second"`, a timedelta, or microseconds.

        Call it before a sequence reads the stream.
        """
        self._stateful.declare_tick(name, tick)

    # subscriptions

    def subscribe(
        self,
        query: QuerySource,
        *,
        id: str | None = None,
        valid_from: object | None = None,
        valid_until: object | None = None,
        owner: str | None = None,
        weight: Weight = 1.0,
        witness: Literal["full"] | None = None,
        replace: bool = False,
    ) -> str:
        """Add a subscription and return its id; an id that exists is an error, unless `replace` is set."""
        name = uuid4().hex if id is None else id
        check_id(name)
        options = read_options(valid_from, valid_until, owner, name, weight=weight, witness=witness)
        compiled = self._stateful.compile(name, query, options)
        self._exchange(self._replaced([name], replace=replace), {name: compiled})
        return name

    def subscribe_many(
        self,
        template: str | Template,
        rows: Rows,
        *,
        id: str | None = None,
        valid_from: object | None = None,
        valid_until: object | None = None,
        owner: str | None = None,
        weight: Weight = 1.0,
        witness: Literal["full"] | None = None,
        replace: bool = False,
    ) -> SubscribedMany:
        """Add a subscription for each row of a template's parameters; faulty rows are reported."""
        options = read_options(valid_from, valid_until, owner, weight=weight, witness=witness)
        made = self._compile_template(template, rows, id, options)
        self._exchange_rows(self._replaced(made.ids, replace=replace), made, options)
        return made.result()

    def unsubscribe(self, id: str) -> None:
        """Remove a subscription; raise if its id is unknown."""
        if id not in self:
            raise SubscriptionError("it is not in the index", id)
        self._exchange([id], {})

    def apply(
        self, subscriptions: SubscriptionSet, *, on_error: Callable[[SubscriptionError], object] | None = None
    ) -> Difference:
        """Make the subscriptions of the index equal to these, and return the difference.

        `subscriptions` maps ids to queries, or lists `Subscription`s. If any is faulty, nothing is changed and
        `ApplyError` is raised. With `on_error`, each error is passed to it, faulty subscriptions stay as they were,
        and the others are applied.
        """
        compiled, errors = compile_set(subscriptions, None, self._stateful.compile, own_owners=True)
        self._contents.settle()
        return self._apply(self, compiled, errors, on_error)

    def apply_stateful(
        self,
        subscriptions: Iterable[GivenText],
        *,
        on_error: Callable[[SubscriptionError], object] | None = None,
    ) -> Difference:
        """Make the sequences and views equal to these, as `apply` does, and leave the filters as they are."""
        compiled: dict[str, CompiledSubscription[Any]] = {}
        errors = []
        for one in subscriptions:
            try:
                compiled[one.id] = self._stateful.compile(one.id, one.text, one.options)
            except SubscriptionError as error:
                errors.append(error)
            except TocsinError as error:
                errors.append(SubscriptionError(str(error), one.id))
        return self._apply(self._stateful, compiled, errors, on_error)

    def _apply(
        self,
        held: Collection[str],
        compiled: dict[str, CompiledSubscription[Any]],
        errors: Sequence[SubscriptionError],
        on_error: Callable[[SubscriptionError], object] | None,
    ) -> Difference:
        """Make the subscriptions `held` equal to the compiled ones."""
        if errors and on_error is None:
            raise ApplyError(tuple(errors))
        faulty: set[str | None] = set()
        while True:
            for error in errors:
                if on_error is None:
                    raise ApplyError((error,)) from error
                on_error(error)
                faulty.add(error.id)
            found = self._difference(held, compiled, faulty)
            try:
                self._exchange(
                    (*found.removed, *found.changed),
                    {name: compiled[name] for name in (*found.added, *found.changed)},
                )
            except SubscriptionError as error:  # one whose streams do not go with those of the others
                if error.id not in compiled:
                    raise
                del compiled[error.id]
                errors = [error]
            else:
                return found

    def apply_many(self, template: str | Template, rows: Rows, *, id: str) -> SubscribedMany:
        """Make the subscriptions equal to those of a template's rows; faulty rows are reported.

        The earlier subscription of a row that is faulty now is removed. `id` names the column that holds the ids, or is a pattern, so that ids stay the same.
        """
        options = SubscriptionOptions()
        made = self._compile_template(template, rows, id, options)
        held = self._contents
        held.settle()
        if isinstance(made.template.query, Filter):
            known = zip(made.ids, digests_of(made.rows), strict=True)
            same = np.array([held.is_unchanged(one, options.validity, digest) for one, digest in known], bool)
        else:
            same = self._stateful.are_same(made, options)
        new = np.flatnonzero(~same)
        wanted = set(made.ids)
        removed = [name for name in self if name not in wanted]
        removed += [name for name in made.ids.at_all(new) if name in self]
        self._exchange_rows(removed, _taken(made, new), options)
        return made.result()

    def __len__(self) -> int:
        return len(self._contents) + len(self._stateful)

    def __contains__(self, id: object) -> bool:
        return id in self._contents or (len(self._stateful) > 0 and id in self._stateful)

    def __iter__(self) -> Iterator[str]:
        yield from self._contents
        yield from self._stateful

    def stateful(self) -> Iterator[str]:
        """Return the ids of the sequences and views."""
        return iter(self._stateful)

    @property
    def published(self) -> frozenset[str]:
        """Return the streams that sequences publish."""
        return self._stateful.published

    @property
    def has_changes(self) -> bool:
        """Return whether there are changes to publish."""
        return self._contents.has_changes or self._stateful.is_changed or not self.generation

    def publish(self, *, lateness: int | None = None) -> int:
        """Write the changes as a new generation, make it current, and return its number.

        With `lateness`, subscriptions that expired more than that many microseconds ago are removed first. If
        nothing has changed since the last generation, its number is returned.
        """
        held = self._contents
        if held.is_torn or self._stateful.is_torn:
            raise self.generations.fault(
                "a change was interrupted and is not published; open the index again and repeat it"
            )
        held.settle()
        if lateness is not None:
            time_ = now_in_microseconds() - lateness
            self._exchange([*held.expired(time_), *self._stateful.expired(time_)], {})
        self._link_filters()
        if not self.has_changes:
            return self.generation
        storage = self.generations.storage
        entries = list(self._entries)
        for shard in range(self.shards):
            if shard in held.changed or shard >= len(entries):
                entries[shard : shard + 1] = [save_shard(storage, held.drafts[shard])]
        self._publish(entries, held.routes, held.placement or Placement(self.shards), held.attributes)
        held.changed.clear()
        return self.generation

    def adopt(
        self, parts: Sequence[IndexPart], placement: Placement, linked: Sequence[GivenText] = ()
    ) -> int:
        """Publish shards that other processes built and saved in this folder; they replace all present shards.

        Sequences and views are published as they are here; `linked` are the filters on streams that they publish.
        """
        for streams, filters in ((frozenset[str](), ()), (self.published, linked)):
            self._stateful.relink(streams, filters, self.generation + 1)
        routes = Routes()
        for part in parts:
            for shard, access in part.routes:
                routes.add(shard, access)
        self._router = None
        attributes = {attribute for part in parts for attribute in part.attributes}
        by_shard = {part.shard: part.entry for part in parts}
        empty = Contents(1).drafts[0]
        storage = self.generations.storage
        entries = [by_shard.get(shard) or save_shard(storage, empty) for shard in range(self.shards)]
        self._publish(entries, routes, placement, attributes)
        return self.generation

    def _publish(
        self, entries: list[ShardEntry], routes: Routes, placement: Placement, attributes: Iterable[str]
    ) -> None:
        """Write the router if its routes grew, and publish the next generation."""
        if self.shards > 1 and (len(routes.entries) != self._routed or self._router is None):
            storage = self.generations.storage
            self._router = written(storage, "routers", lambda place: save_router(routes, place))
            self._routed = len(routes.entries)
        number = self.generation + 1
        stateful = self._stateful.save(self.generations.storage)
        if stateful is not None:
            self.generations.require_format(FORMAT)
        contents = tuple(entries), self._router, tuple(sorted(attributes)), placement, stateful
        self.generations.publish(Generation(number, time.time(), *contents))
        self.generation, self._entries = number, entries
        self._stateful.saved(stateful)

    def rebalance(self) -> None:
        """Choose a placement for the present subscriptions and redistribute them; `publish` writes it."""
        self._contents.rebalance()
        self._router = None

    def vacuum(self, *, older_than: float = 3600.0) -> list[str]:
        """Remove generations that no stream can need any more, and return the removed paths."""
        return self.generations.vacuum(older_than=older_than)

    # steps of the public methods

    def _load(self, number: int) -> None:
        """Read a generation: its shards as drafts, its placement, attributes and routes."""
        self.generation = number
        saved = self.generations.read(number)
        storage = self.generations.storage
        self._entries = list(saved.shards)
        drafts = [ShardDraft.of(storage.folder(entry.folder)) for entry in saved.shards]
        self._contents.take(drafts, saved.placement)
        self._contents.attributes = set(saved.attributes or ())
        if saved.stateful is not None:
            entry = saved.stateful
            self._stateful.load(read_stateful(storage.folder(entry.folder), entry.digest), entry)
        if saved.router is not None:
            self._router = saved.router
            self._contents.routes = open_routes(storage.folder(saved.router))
            self._routed = len(self._contents.routes.entries)

    def _replaced(self, ids: Sequence[str], *, replace: bool) -> list[str]:
        """Return the ids that are in the index, or raise `SubscriptionError` if they may not be replaced."""
        taken = [name for name in ids if name in self]
        if taken and not replace:
            raise SubscriptionError("it is in the index already; to change it, set `replace`", taken[0])
        return taken

    def _compile_template(
        self, template: str | Template, rows: Rows, id_rule: str | None, options: SubscriptionOptions
    ) -> TemplateBatch[Any]:
        parsed = template if isinstance(template, Template) else Template(template)
        if isinstance(parsed.query, Filter):
            return TemplateBatch.of(parsed, rows, id_rule, FilterCompiler().compile_rows)
        return self._stateful.compile_template(parsed, rows, id_rule, options)

    def _difference(
        self,
        held: Collection[str],
        compiled: Mapping[str, CompiledSubscription[Any]],
        faulty: Set[str | None],
    ) -> Difference:
        """Return what would change if the subscriptions `held` were these; faulty ones stay as they are."""
        both = dict.fromkeys(name for name in compiled if name in held)
        unchanged = {name for name in both if self._is_unchanged(name, compiled[name])}
        return Difference(
            added=tuple(name for name in compiled if name not in both),
            changed=tuple(name for name in both if name not in unchanged),
            removed=tuple(name for name in held if name not in compiled and name not in faulty),
            unchanged=tuple(name for name in both if name in unchanged),
        )

    def _is_unchanged(self, id_: str, one: CompiledSubscription[Any]) -> bool:
        if type(one.read) is Filter:
            validity, digest = one.options.validity, digest_of(one.read, one.text)
            return self._contents.is_unchanged(id_, validity, digest)
        return self._stateful.is_same(id_, one)

    def _exchange(self, removed: Sequence[str], new: Mapping[str, CompiledSubscription[Any]]) -> None:
        """Replace subscriptions by new ones; if one is refused, nothing changes."""
        others = {name: one for name, one in new.items() if type(one.read) is not Filter}
        filters = {name: one for name, one in new.items() if name not in others} if others else new
        gone = self._stateful.present(removed)
        if gone or others:
            self._stateful.exchange(gone, others, self.generation + 1)
        self._remove_filters(removed, gone)
        for addition in WaitingFilters.of(filters):
            self._contents.add(addition)
        self._stateful.link(filters, self.generation + 1)

    def _exchange_rows(
        self, removed: Sequence[str], made: TemplateBatch[Any], options: SubscriptionOptions
    ) -> None:
        """Replace subscriptions by the rows of a template; if they are refused, nothing changes."""
        gone, generation = self._stateful.present(removed), self.generation + 1
        if not isinstance(made.template.query, Filter):
            self._stateful.exchange_rows(gone, made, options, generation)
            self._remove_filters(removed, gone)
            return
        self._stateful.exchange(gone, {}, generation)
        self._remove_filters(removed, gone)
        if made.ids:
            self._contents.add(WaitingFilters.of_rows(made, options.validity))
            self._stateful.link_rows(made, options, generation)

    def _remove_filters(self, removed: Sequence[str], others: Sequence[str]) -> None:
        """Remove those of the `removed` that are none of the others."""
        if len(removed) > len(others):
            left = set(others)
            filters = [name for name in removed if name not in left] if left else removed
            self._contents.remove(filters)
            self._stateful.unlink(filters)

    def _link_filters(self) -> None:
        """Find the filters on streams that sequences have begun to publish, and drop those on streams that none does."""
        streams = self._stateful.published
        new = streams - self._stateful.linked_streams
        found = [
            GivenText(name, to_text(query), SubscriptionOptions(validity))
            for name, validity, query in (self._contents.filters_on(new) if new else ())
        ]
        self._stateful.relink(streams, found, self.generation + 1)


def _taken(made: TemplateBatch[Any], positions: IdArray) -> TemplateBatch[Any]:
    """Return the rows of a template at some positions; a template with rows compiled one by one keeps theirs."""
    if len(positions) == len(made.ids):
        return made
    ids, rows = made.ids.take(positions), made.rows.take(positions)
    return replaced(made, ids=ids, hashes=made.hashes[positions], rows=rows)
