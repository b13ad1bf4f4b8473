"""An index of subscriptions in a folder: changed by one process, matched with by any number of others."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any, Final
from uuid import uuid4

import numpy as np
from msgspec import Struct

from tocsin.engine.filters import normal_form, only_filters
from tocsin.engine.ids import row_ids
from tocsin.engine.results import Difference, SubscribedMany
from tocsin.engine.wanted import WantedSet, check_id, read_terms, read_wanted
from tocsin.formats.reader import now_in_microseconds
from tocsin.index.generations import Generation, Generations, ShardEntry
from tocsin.index.placement import Placement, Routes
from tocsin.index.roll import digest_of, digests_of, select_text
from tocsin.index.router import open_routes, save_router
from tocsin.index.shard import ShardDraft
from tocsin.index.storage import storage_of
from tocsin.language import Template
from tocsin.language.normal.predicates import attributes_of
from tocsin.language.sources import QuerySource, read_query
from tocsin.language.template.binding import bind_query
from tocsin.language.template.columns import Rows, as_table
from tocsin.language.template.template import bindings_at
from tocsin.matching import ConjunctionBatch, ConjunctionGroup
from tocsin.model import Filter, Predicate
from tocsin.model.conditions import Conjunction, Operator
from tocsin.model.errors import ApplyError, SavedIndexError, SubscriptionError

__all__ = ["SubscriptionIndex"]

_SAMPLE: Final = 50_000


class _Addition(Struct, frozen=True):
    """Subscriptions that wait to be placed; their numbers in `batch` count from 0."""

    ids: Sequence[str]
    batch: ConjunctionBatch
    terms: tuple[int, int]
    digests: Sequence[int]
    selects: Sequence[str | None]


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
        self._waiting: list[_Addition] = []
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
        self._enter([(name, asked, normal.conjunctions)], (terms.valid_from, terms.valid_until))
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
        form = template if isinstance(template, Template) else Template(template)
        table = as_table(rows)
        bound = form.bind_many(table)
        ids, repeated = row_ids(id, table, bound)
        kept = bound.without([error.row or 0 for error in repeated]) if repeated else bound
        terms = read_terms(valid_from, valid_until, None)
        asked = only_filters(form.query, "template")
        normal = normal_form(asked, "template", kept.normal)
        self._make_room(ids, replace=replace)
        batch = ConjunctionBatch.of_shapes(
            np.arange(len(ids), dtype=np.int64), normal.conjunctions, kept.columns
        )
        selects: Sequence[str | None] = [None] * len(ids)
        if asked.select:
            selects = [select_text(_bound(asked, kept.columns, row)) for row in range(len(ids))]
        self._note(normal.conjunctions, asked)
        self._wait(_Addition(ids, batch, (terms.valid_from, terms.valid_until), digests_of(kept), selects))
        errors = sorted((*bound.errors, *repeated), key=lambda error: error.row or 0)
        return SubscribedMany(tuple(ids), tuple(errors), tuple(bound.never.tolist()))

    def unsubscribe(self, id: str) -> None:
        """Withdraw a subscription; one that is not there is an error."""
        if id not in self:
            raise SubscriptionError("it is not in the index", id)
        self._remove([id])

    def apply(self, wanted: WantedSet) -> Difference:
        """Make the subscriptions equal to `wanted`, all at once or not at all; return the difference.

        `wanted` maps ids to queries, or lists `Subscription`s.
        """
        sought, errors = read_wanted(wanted, "index")
        if errors:
            raise ApplyError(tuple(errors))
        self._place_waiting()
        added, changed, unchanged = [], [], []
        for name, one in sought.items():
            shard = self._where.get(name)
            terms = (one.terms.valid_from, one.terms.valid_until)
            if shard is None:
                added.append(name)
            elif self._drafts[shard].roll.holds(name, terms, digest_of(one.query)):
                unchanged.append(name)
            else:
                changed.append(name)
        removed = [name for name in self._where if name not in sought]
        self._remove([*removed, *changed])
        by_terms: dict[tuple[int, int], list[tuple[str, Filter, tuple[Conjunction, ...]]]] = {}
        for name in (*added, *changed):
            one = sought[name]
            entry = (name, one.query, one.normal.conjunctions)
            by_terms.setdefault((one.terms.valid_from, one.terms.valid_until), []).append(entry)
        for terms, entries in by_terms.items():
            self._enter(entries, terms)
        return Difference(tuple(added), tuple(changed), tuple(removed), tuple(unchanged))

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
                batch = _batch([conjunctions[draft.roll.numbers[record.id]] for record in records])
                self._wait(
                    _Addition(
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

    def _enter(
        self, entries: Sequence[tuple[str, Filter, tuple[Conjunction, ...]]], terms: tuple[int, int]
    ) -> None:
        for _, query, conjunctions in entries:
            self._note(conjunctions, query)
        self._wait(
            _Addition(
                [name for name, _, _ in entries],
                _batch([conjunctions for _, _, conjunctions in entries]),
                terms,
                [digest_of(query) for _, query, _ in entries],
                [select_text(query) for _, query, _ in entries],
            )
        )

    def _note(self, conjunctions: Iterable[Conjunction], query: Filter) -> None:
        """Take note of the attributes that a subscription speaks of."""
        for conjunction in conjunctions:
            for predicate in conjunction:
                self._attributes.update(attribute.path for attribute in attributes_of(predicate))
        for item in query.select:
            asked = Predicate(item.term, Operator.PRESENT)
            self._attributes.update(attribute.path for attribute in attributes_of(asked))

    def _wait(self, addition: _Addition) -> None:
        self._waiting.append(addition)
        self._waiting_ids.update(dict.fromkeys(addition.ids))

    def _remove(self, ids: Sequence[str]) -> None:
        if any(name in self._waiting_ids for name in ids):
            self._place_waiting()
        gone: dict[int, list[int]] = {}
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
        if self.shards > 1 and not self._where:
            self._placement = Placement.of(_sampled([one.batch for one in waiting]), self.shards)
        for one in _merged(waiting):
            shards = self._routes.place(one.batch, one.ids, self._placement)
            for shard in np.unique(shards).tolist():
                self._fill(shard, one, np.flatnonzero(shards == shard))

    def _fill(self, shard: int, one: _Addition, places: Any) -> None:
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


def _batch(subscriptions: Sequence[Sequence[Conjunction]]) -> ConjunctionBatch:
    return ConjunctionBatch(
        tuple(
            ConjunctionGroup(conjunction, np.array([number], dtype=np.int64), {})
            for number, conjunctions in enumerate(subscriptions)
            for conjunction in conjunctions
        )
    )


def _bound(query: Filter, columns: Mapping[str, Any], row: int) -> Filter:
    bound = bind_query(query, bindings_at(columns, row))
    assert isinstance(bound, Filter)  # noqa: S101 - what was a filter is one
    return bound


def _merged(waiting: Sequence[_Addition]) -> Iterator[_Addition]:
    """Return the additions, those that came one by one and for the same time as one."""
    single: dict[tuple[int, int], list[_Addition]] = {}
    for one in waiting:
        if len(one.ids) == 1:
            single.setdefault(one.terms, []).append(one)
        else:
            yield one
    for terms, several in single.items():
        groups = [
            ConjunctionGroup(group.shape, np.full(len(group.ids), number, dtype=np.int64), group.columns)
            for number, one in enumerate(several)
            for group in one.batch.groups
        ]
        yield _Addition(
            [one.ids[0] for one in several],
            ConjunctionBatch(tuple(groups)),
            terms,
            [one.digests[0] for one in several],
            [one.selects[0] for one in several],
        )


def _sampled(batches: Sequence[ConjunctionBatch]) -> Iterator[Conjunction]:
    """Return some conjunctions of all, evenly spread, with their constants in place."""
    total = sum(len(batch) for batch in batches)
    step = max(1, -(-total // _SAMPLE))
    seen = 0
    for batch in batches:
        for group in batch.groups:
            first = -seen % step
            rows = np.arange(first, len(group.ids), step)
            seen += len(group.ids)
            columns = {name: column[rows] for name, column in group.columns.items()}
            for _, conjunction in ConjunctionGroup(group.shape, group.ids[rows], columns):
                yield conjunction
