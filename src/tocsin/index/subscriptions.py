"""An index of subscriptions in a folder: changed by one process, matched with by any number of others."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from tocsin.formats.event_reader import now_in_microseconds
from tocsin.index.additions import Addition, IndexedFilter
from tocsin.index.contents import Contents, IndexPart, save_shard, written
from tocsin.index.generations import Generation, Generations, ShardEntry
from tocsin.index.placement import Placement, Routes
from tocsin.index.router import open_routes, save_router
from tocsin.index.shard import ShardDraft
from tocsin.index.shard_registry import digest_of, digests_of
from tocsin.index.storage import storage_of
from tocsin.language import Template
from tocsin.language.check import QuerySource
from tocsin.language.template.columns import Rows
from tocsin.model.errors import ApplyError, SavedIndexError, SubscriptionError
from tocsin.model.options import Validity
from tocsin.subscriptions.filters import FilterCompiler, require_filter
from tocsin.subscriptions.options import check_id, read_options
from tocsin.subscriptions.results import Difference, SubscribedMany
from tocsin.subscriptions.sources import SubscriptionSet, compile_filter, compile_set
from tocsin.subscriptions.template_batch import TemplateBatch


class SubscriptionIndex:
    """Subscriptions in a folder, to be changed and published as generations.

    Changes are buffered until `publish`, which writes them and makes them current atomically: a process that
    matches with the index sees either the previous generation or the new one. `shards` is the number of parts of
    a new index; a process that matches needs only one of them at a time. `matcher` names the matcher; by default,
    brute force is used while there is little to do.

    `folder` is a path that all processes can read, or a URI such as `s3a://bucket/index`. Only one process at a
    time may change an index; if two do, the second one's `publish` is refused.
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
        self._entries: list[ShardEntry] = []
        self._router: str | None = None
        self._routed = 0  # routes that the saved router has
        if current := self.generations.current():
            self._load(current)

    # subscriptions

    def subscribe(
        self,
        query: QuerySource,
        *,
        id: str | None = None,
        valid_from: object | None = None,
        valid_until: object | None = None,
        replace: bool = False,
    ) -> str:
        """Add a subscription and return its id; an id that exists is an error, unless `replace` is set."""
        name = uuid4().hex if id is None else id
        check_id(name)
        compiled = compile_filter(name, query, read_options(valid_from, valid_until, id_=name))
        self._make_room([name], replace=replace)
        for addition in Addition.of({name: compiled}):
            self._contents.add(addition)
        return name

    def subscribe_many(
        self,
        template: str | Template,
        rows: Rows,
        *,
        id: str | None = None,
        valid_from: object | None = None,
        valid_until: object | None = None,
        replace: bool = False,
    ) -> SubscribedMany:
        """Add a subscription for each row of a template's parameters; faulty rows are reported."""
        made = TemplateBatch.of(template, rows, id, FilterCompiler().compile_rows)
        validity = read_options(valid_from, valid_until).validity
        self._make_room(made.ids, replace=replace)
        if made.ids:
            self._contents.add(Addition.of_rows(made, validity))
        return made.result()

    def unsubscribe(self, id: str) -> None:
        """Remove a subscription; raise if its id is unknown."""
        if id not in self:
            raise SubscriptionError("it is not in the index", id)
        self._contents.remove([id])

    def apply(
        self, subscriptions: SubscriptionSet, *, on_error: Callable[[SubscriptionError], object] | None = None
    ) -> Difference:
        """Make the subscriptions of the index equal to these, and return the difference.

        `subscriptions` maps ids to queries, or lists `Subscription`s. If any is faulty, nothing is changed and
        `ApplyError` is raised. With `on_error`, each error is passed to it, faulty subscriptions stay as they were,
        and the others are applied.
        """
        compiled, errors = compile_set(subscriptions, "index", compile_filter)
        if errors and on_error is None:
            raise ApplyError(tuple(errors))
        for error in errors:
            on_error(error)  # type: ignore[misc]
        faulty = {error.id for error in errors}
        held = self._contents
        held.settle()
        added = [name for name in compiled if name not in held]
        both = [name for name in compiled if name in held]
        digests = {name: _digest(compiled[name], name) for name in both}
        validity = {name: compiled[name].options.validity for name in both}
        changed = [name for name in both if not held.is_unchanged(name, validity[name], digests[name])]
        removed = [name for name in held if name not in compiled and name not in faulty]
        held.remove([*removed, *changed])
        for addition in Addition.of({name: compiled[name] for name in (*added, *changed)}):
            held.add(addition)
        kept = set(both).difference(changed)
        unchanged = (name for name in both if name in kept)
        return Difference(tuple(added), tuple(changed), tuple(removed), tuple(unchanged))

    def apply_many(self, template: str | Template, rows: Rows, *, id: str) -> SubscribedMany:
        """Make the subscriptions equal to those of a template's rows; faulty rows are reported.

        The earlier subscription of a row that is faulty now is removed. `id` names the column that holds the ids, or is a pattern, so that ids stay the same.
        """
        made = TemplateBatch.of(template, rows, id, FilterCompiler().compile_rows)
        held = self._contents
        held.settle()
        validity = Validity()
        digests = digests_of(made.rows)
        known = zip(made.ids, digests, strict=True)
        new = [place for place, one in enumerate(known) if not held.is_unchanged(one[0], validity, one[1])]
        wanted = set(made.ids)
        held.remove([name for name in held if name not in wanted])
        held.remove([made.ids[place] for place in new if made.ids[place] in held])
        if new:
            held.add(Addition.of_rows(made, validity, new))
        return made.result()

    def __len__(self) -> int:
        return len(self._contents)

    def __contains__(self, id: object) -> bool:
        return id in self._contents

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    @property
    def has_changes(self) -> bool:
        """Return whether there are changes to publish."""
        return self._contents.has_changes or not self.generation

    def publish(self, *, lateness: int | None = None) -> int:
        """Write the changes as a new generation, make it current, and return its number.

        With `lateness`, subscriptions that expired more than that many microseconds ago are removed first. If
        nothing has changed since the last generation, its number is returned.
        """
        held = self._contents
        if held.is_torn:
            raise self.generations.fault(
                "a change was interrupted and is not published; open the index again and repeat it"
            )
        held.settle()
        if lateness is not None:
            held.remove(held.expired(now_in_microseconds() - lateness))
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

    def adopt(self, parts: Sequence[IndexPart], placement: Placement) -> int:
        """Publish shards that other processes built and saved in this folder; they replace all present shards."""
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
        contents = tuple(entries), self._router, tuple(sorted(attributes)), placement
        self.generations.publish(Generation(number, time.time(), *contents))
        self.generation, self._entries = number, entries

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
        if saved.router is not None:
            self._router = saved.router
            self._contents.routes = open_routes(storage.folder(saved.router))
            self._routed = len(self._contents.routes.entries)

    def _make_room(self, ids: Sequence[str], *, replace: bool) -> None:
        taken = [name for name in ids if name in self._contents]
        if taken and not replace:
            raise SubscriptionError("it is in the index already; to change it, set `replace`", taken[0])
        self._contents.remove(taken)


def _digest(compiled: IndexedFilter, id_: str) -> int:
    return digest_of(require_filter(compiled.query, id_), compiled.text)
