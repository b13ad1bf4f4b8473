"""An index of subscriptions in a folder: changed by one process, matched with by any number of others."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any
from uuid import uuid4

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.engine.filters import normal_form, only_filters
from tocsin.engine.ids import row_ids
from tocsin.engine.results import Difference, SubscribedMany
from tocsin.engine.wanted import Wanted, WantedSet, check_id, read_terms, read_wanted
from tocsin.formats.reader import now_in_microseconds
from tocsin.index.additions import Addition, batch_of, merged, sampled
from tocsin.index.generations import Generation, Generations, ShardEntry
from tocsin.index.placement import Placement, Routes
from tocsin.index.roll import digest_of, digests_of
from tocsin.index.router import open_routes, save_router
from tocsin.index.shard import ShardDraft
from tocsin.index.storage import storage_of
from tocsin.language import Template, TemplateRows
from tocsin.language.normal.predicates import attributes_of
from tocsin.language.sources import QuerySource, read_query
from tocsin.language.template.columns import Rows, as_table
from tocsin.matching import ConjunctionBatch, ConjunctionGroup
from tocsin.model import Filter, Predicate
from tocsin.model.conditions import Conjunction, Operator
from tocsin.model.errors import ApplyError, SavedIndexError, SubscriptionError, TemplateError

__all__ = ["SubscriptionIndex"]


class SubscriptionIndex:
    """Subscriptions in a folder, to be changed and published as generations.

    Changes are held back until `publish`, which writes them and makes them current in one step: whoever matches
    with the index finds either the generation before or the new one. `shards` spreads a new index over so many
    parts, of which a process that matches needs only one at a time. `matcher` names the index that matches;
    without it, brute force is kept while there is little to do.

    `folder` is a path that all who match can read, or a URI such as `s3a://bucket/index`. Only one process at a
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
        self._matcher = matcher or home.matcher
        self._options = dict(options or {})
        self.generation = 0
        self._waiting: list[Addition] = []
        self._waiting_ids: dict[str, None] = {}
        self._drafts = [self._new_draft() for _ in range(self.shards)]
        self._changed: set[int] = set()  # shards that differ from the generation
        self._entries: list[ShardEntry] = []
        self._where: dict[str, int] = {}
        self._placement = Placement(self.shards)
        self._routes = Routes()
        self._router: str | None = None
        self._routed = 0  # routes that the saved router has
        self._attributes: set[str] = set()
        self._is_torn = False  # whether a change broke off half-way
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
        """Enter a subscription and return its id; one that is there already is an error, unless `replace` is set."""
        name = uuid4().hex if id is None else id
        check_id(name)
        checked = read_query(query)
        asked = only_filters(checked.query, name)
        terms = read_terms(valid_from, valid_until, None, name)
        normal = normal_form(asked, name, checked.normal)
        self._make_room([name], replace=replace)
        self._note(normal.conjunctions, asked)
        self._wait(Addition.of_filters([(name, asked, normal.conjunctions)], terms.period))
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
        """Enter a subscription for each row of a template's parameters; faulty rows are reported."""
        made = _Made.of(template, rows, id)
        terms = read_terms(valid_from, valid_until, None)
        self._make_room(made.ids, replace=replace)
        self._enter_rows(made, np.arange(len(made.ids)), terms.period)
        return made.told()

    def unsubscribe(self, id: str) -> None:
        """Withdraw a subscription; one that is not there is an error."""
        if id not in self:
            raise SubscriptionError("it is not in the index", id)
        self._remove([id])

    def apply(
        self, wanted: WantedSet, *, on_error: Callable[[SubscriptionError], object] | None = None
    ) -> Difference:
        """Make the subscriptions equal to `wanted`, and return the difference.

        `wanted` maps ids to queries, or lists `Subscription`s. If any is at fault, nothing is changed and
        `ApplyError` is raised; with `on_error`, it is told of each, they are left as they were, and the rest goes on.
        """
        sought, errors = read_wanted(wanted, "index")
        if errors and on_error is None:
            raise ApplyError(tuple(errors))
        for error in errors:
            on_error(error)  # type: ignore[misc]
        faulty = {error.id for error in errors}
        self._place_waiting()
        added = [name for name in sought if name not in self._where]
        both = [name for name in sought if name in self._where]
        changed = [name for name in both if not self._holds(name, sought[name])]
        removed = [name for name in self._where if name not in sought and name not in faulty]
        self._remove([*removed, *changed])
        by_terms: dict[tuple[int, int], list[tuple[str, Filter, tuple[Conjunction, ...]]]] = {}
        for name in (*added, *changed):
            one = sought[name]
            self._note(one.normal.conjunctions, one.query)
            entry = (name, one.query, one.normal.conjunctions)
            by_terms.setdefault(one.terms.period, []).append(entry)
        for terms, entries in by_terms.items():
            self._wait(Addition.of_filters(entries, terms))
        kept = set(both).difference(changed)
        return Difference(
            tuple(added), tuple(changed), tuple(removed), tuple(name for name in both if name in kept)
        )

    def apply_many(self, template: str | Template, rows: Rows, *, id: str) -> SubscribedMany:
        """Make the subscriptions equal to those of a template's rows; faulty rows are reported.

        `id` names the column that holds the ids, or is a pattern, so that rows are known again.
        """
        made = _Made.of(template, rows, id)
        self._place_waiting()
        period = read_terms(None, None, None).period
        new = []
        for place, name in enumerate(made.ids):
            shard = self._where.get(name)
            if shard is None or not self._drafts[shard].roll.holds(name, period, made.digests[place]):
                new.append(place)
        wanted = set(made.ids)
        self._remove([name for name in self._where if name not in wanted])
        self._remove([made.ids[place] for place in new if made.ids[place] in self._where])
        self._enter_rows(made, np.array(new, dtype=np.int64), period)
        return made.told()

    def __len__(self) -> int:
        return len(self._where) + len(self._waiting_ids)

    def __contains__(self, id: object) -> bool:
        return id in self._where or id in self._waiting_ids

    def __iter__(self) -> Iterator[str]:
        yield from self._where
        yield from self._waiting_ids

    @property
    def has_changes(self) -> bool:
        """Tell whether there is something to publish."""
        return bool(self._waiting or self._changed or not self.generation)

    def publish(self, *, lateness: int | None = None) -> int:
        """Write what has changed as a new generation, make it current, and return its number.

        With `lateness`, subscriptions that expired so many microseconds ago are let go first. If nothing has
        changed since the last generation, that one's number is returned.
        """
        if self._is_torn:
            raise self.generations.fault(
                "a change broke off half-way and is not published; open the index anew and repeat it"
            )
        self._place_waiting()
        if lateness is not None:
            now = now_in_microseconds() - lateness
            self._remove([name for draft in self._drafts for name in draft.roll.over(now)])
        if not self.has_changes:
            return self.generation
        entries = list(self._entries)
        for shard in range(self.shards):
            if shard in self._changed or shard >= len(entries):
                draft = self._drafts[shard]
                folder = self._written("shards", draft.save)
                entries[shard : shard + 1] = [ShardEntry(folder, len(draft.roll), draft.bytes)]
        if self.shards > 1 and (len(self._routes.entries) != self._routed or self._router is None):
            routes = self._routes
            self._router = self._written("routers", lambda place: save_router(routes, place))
            self._routed = len(routes.entries)
        number = self.generation + 1
        attributes = tuple(sorted(self._attributes))
        self.generations.publish(
            Generation(number, time.time(), tuple(entries), self._router, attributes, self._placement)
        )
        self.generation, self._entries = number, entries
        self._changed.clear()
        return number

    def rebalance(self) -> None:
        """Spread all subscriptions over the shards anew, by what they are now; `publish` writes it."""
        self._place_waiting()
        before = self._drafts
        held = [draft.conjunctions() for draft in before]
        self._placement = Placement(self.shards)
        self._routes, self._router = Routes(), None
        self._drafts = [self._new_draft() for _ in range(self.shards)]
        self._where.clear()
        self._changed.update(range(self.shards))
        for draft, conjunctions in zip(before, held, strict=True):
            for terms, records in draft.roll.records().items():
                batch = batch_of([conjunctions[draft.roll.numbers[record.id]] for record in records])
                self._wait(
                    Addition(
                        [record.id for record in records],
                        batch,
                        terms,
                        [record.digest for record in records],
                        [record.select for record in records],
                    )
                )
        self._place_waiting()

    def vacuum(self, *, older_than: float = 3600.0) -> list[str]:
        """Remove generations that no stream can need any more, and return the paths of what is gone."""
        return self.generations.vacuum(older_than=older_than)

    # what the others are made of

    def _load(self, number: int) -> None:
        self.generation = number
        saved = self.generations.read(number)
        storage = self.generations.storage
        self._entries = list(saved.shards)
        self._drafts = [ShardDraft.of(storage.folder(entry.folder)) for entry in saved.shards]
        for shard, draft in enumerate(self._drafts):
            self._where.update(dict.fromkeys(draft.roll.numbers, shard))
        if saved.router is not None:
            self._router = saved.router
            self._routes = open_routes(storage.folder(saved.router))
            self._routed = len(self._routes.entries)
        self._attributes = set(saved.attributes or ())
        self._placement = saved.placement

    def _new_draft(self) -> ShardDraft:
        return ShardDraft.new(self._matcher, self._options)

    def _make_room(self, ids: Sequence[str], *, replace: bool) -> None:
        taken = [name for name in ids if name in self]
        if taken and not replace:
            raise SubscriptionError("it is in the index already; to change it, set `replace`", taken[0])
        self._remove(taken)

    def _enter_rows(self, made: _Made, places: NDArray[np.int64], terms: tuple[int, int]) -> None:
        if not len(places):
            return
        ids = [made.ids[place] for place in places.tolist()]
        digests = [made.digests[place] for place in places.tolist()]
        rows = made.rows if len(ids) == len(made.ids) else made.rows.take(places)
        self._note(made.shapes, made.query)
        self._wait(Addition.of_rows(ids, made.query, made.shapes, rows, terms=terms, digests=digests))

    def _holds(self, name: str, one: Wanted) -> bool:
        roll = self._drafts[self._where[name]].roll
        return roll.holds(name, one.terms.period, digest_of(one.query))

    def _note(self, conjunctions: Iterable[Conjunction], query: Filter) -> None:
        """Take note of the attributes that a subscription speaks of."""
        for conjunction in conjunctions:
            for predicate in conjunction:
                self._attributes.update(attribute.path for attribute in attributes_of(predicate))
        for item in query.select:
            asked = Predicate(item.term, Operator.PRESENT)
            self._attributes.update(attribute.path for attribute in attributes_of(asked))

    def _wait(self, addition: Addition) -> None:
        self._waiting.append(addition)
        self._waiting_ids.update(dict.fromkeys(addition.ids))

    def _remove(self, ids: Sequence[str]) -> None:
        if any(name in self._waiting_ids for name in ids):
            self._place_waiting()
        gone: dict[int, list[int]] = {}
        with self._whole():
            for name in ids:
                shard = self._where.pop(name)
                gone.setdefault(shard, []).append(self._drafts[shard].roll.strike(name))
            for shard, numbers in gone.items():
                self._drafts[shard].matcher.remove(np.array(numbers, dtype=np.int64))
                self._changed.add(shard)

    def _place_waiting(self) -> None:
        """Give what was added a shard each, and enter it there."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        self._waiting_ids = {}
        with self._whole():
            if self.shards > 1 and not self._where:
                self._placement = Placement.of(sampled([one.batch for one in waiting]), self.shards)
            for one in merged(waiting):
                shards = self._routes.place(one.batch, one.ids, self._placement)
                for shard in np.unique(shards).tolist():
                    self._fill(shard, one, np.flatnonzero(shards == shard))

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """See to it that a change which is broken off, by Ctrl-C or for want of memory, is never published."""
        was_torn, self._is_torn = self._is_torn, True
        yield
        self._is_torn = was_torn

    def _fill(self, shard: int, one: Addition, places: Any) -> None:
        draft = self._drafts[shard]
        ids = [one.ids[place] for place in places.tolist()]
        numbers = draft.roll.enter(
            ids,
            one.terms,
            [one.digests[place] for place in places.tolist()],
            [one.selects[place] for place in places.tolist()],
        )
        to_number = np.full(len(one.ids), -1, dtype=np.int64)
        to_number[places] = numbers
        groups = []
        for group in one.batch.groups:
            rows = to_number[group.ids]
            if len(places) == len(one.ids):
                groups.append(ConjunctionGroup(group.shape, rows, group.columns))
            elif (rows >= 0).any():
                kept = np.flatnonzero(rows >= 0)
                columns = {name: column[kept] for name, column in group.columns.items()}
                groups.append(ConjunctionGroup(group.shape, rows[kept], columns))
        batch = ConjunctionBatch(tuple(groups))
        if self._matcher is None:
            draft.make_room(len(batch))
        draft.matcher.add(batch)
        self._where.update(dict.fromkeys(ids, shard))
        self._changed.add(shard)

    def _written(self, kind: str, write: Any) -> str:
        """Write a folder, move it into the index, and return its path there."""
        token = token_hex(8)
        storage = self.generations.storage
        home = getattr(storage, "home", None)  # on this machine already: no copy is needed
        if home is not None:
            home.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=home))
        try:
            write(draft / token)
            storage.take_in(draft / token, f"{kind}/{token}")
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return f"{kind}/{token}"


class _Made(Struct, frozen=True):
    """The subscriptions of a template's rows, before they are entered."""

    ids: list[str]
    query: Filter
    shapes: tuple[Conjunction, ...]
    rows: TemplateRows
    digests: list[int]
    errors: tuple[TemplateError, ...]

    @classmethod
    def of(cls, template: str | Template, rows: Rows, id_rule: str | None) -> _Made:
        form = template if isinstance(template, Template) else Template(template)
        table = as_table(rows)
        bound = form.bind_many(table)
        ids, repeated = row_ids(id_rule, table, bound)
        kept = bound.without([error.row or 0 for error in repeated]) if repeated else bound
        query = only_filters(form.query, "template")
        normal = normal_form(query, "template", kept.normal)
        errors = sorted((*bound.errors, *repeated), key=lambda error: error.row or 0)
        return cls(ids, query, normal.conjunctions, kept, digests_of(kept), tuple(errors))

    def told(self) -> SubscribedMany:
        return SubscribedMany(tuple(self.ids), self.errors, tuple(self.rows.never.tolist()))
