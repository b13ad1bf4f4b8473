"""Making a plan: every subscription is compiled as far as its key, its streams and its static conditions show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.display.text import counted
from tocsin.index.stateful import StatefulSubscriptions
from tocsin.language.template.columns import Column
from tocsin.model import Sequence as SequenceQuery
from tocsin.model import View
from tocsin.model.errors import SubscriptionError
from tocsin.model.terms import Parameter
from tocsin.model.values import Value
from tocsin.sequences.automaton import Automaton
from tocsin.sequences.compiling.compiler import CompiledSequence, compile_sequence
from tocsin.sequences.running.forms import has_any
from tocsin.sharding.correlation import Correlation, Scheme, find_correlation
from tocsin.sharding.hashing import (
    HashedColumn,
    Hashes,
    combined,
    constant_hashes,
    repeated_hash,
    shards_of,
    text_hashes,
)
from tocsin.sharding.parts import QueryPart, parts_of
from tocsin.sharding.plan import EVERY, HOME, KeyGroup, MissingKey, RunPlacement, ShardPlan, StaticRoute
from tocsin.structures.array_types import Bools, Int32s

MOST_GROUPS: Final = 40  # each has a bit of its own with every event that travels
_LINKED: Final = "published streams"  # its hash is the shard of all that publish or read published events


class _Part(NamedTuple):
    """Subscriptions of a run that share a query, compiled if it is a sequence."""

    run: int
    of: QueryPart
    compiled: CompiledSequence | None

    @property
    def positions(self) -> NDArray[np.int64]:
        return self.of.positions

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.of.columns


class _Members(Struct):
    """The sequences of a group, as they are found."""

    size: int = 0
    values: list[Hashes] = []
    takes_any: bool = False


class Planner:
    """Places the subscriptions of one generation."""

    def __init__(self, stateful: StatefulSubscriptions, shards: int) -> None:
        self._stateful = stateful
        self._shards = shards
        self._linked = int(shards_of(text_hashes([_LINKED]), shards)[0])
        self._parts = [part for run in range(len(stateful.runs)) for part in self._parts_of(run)]
        self._published = frozenset(
            part.compiled.publishes
            for part in self._parts
            if part.compiled is not None and part.compiled.publishes is not None
        )
        self._routes: list[StaticRoute] = []
        self._reasons: dict[str, MissingKey] = {}
        self._views = np.zeros(shards, dtype=np.int64)
        self._tables: dict[str, Bools] = {}
        self._placements = [
            RunPlacement(np.full(len(run), HOME, dtype=np.int32), np.full(len(run), EVERY, dtype=np.int32))
            for run in stateful.runs
        ]

    def plan(self, *, changes: bool) -> ShardPlan:
        """Return the plan."""
        keyed: list[tuple[_Part, Correlation]] = []
        for part in self._parts:
            if isinstance(part.of.query, View):
                self._place_view(part, part.of.query)
            elif part.compiled is not None:
                correlation = self._correlation(part, part.compiled)
                if correlation.is_keyed:
                    keyed.append((part, correlation))
                else:
                    self._place_at_home(part, part.compiled, correlation.reason)
        groups = self._place_keyed(keyed)
        everywhere = np.ones(self._shards, dtype=np.bool_)
        nowhere = np.zeros(self._shards, dtype=np.bool_)
        return ShardPlan(
            shards=self._shards,
            groups=groups,
            placements=tuple(self._placements),
            routes=tuple(self._routes),
            tables={
                name: everywhere if changes else self._tables.get(name, nowhere)
                for name in self._stateful.tables
            },
            keys=dict(self._stateful.tables),
            reads=frozenset(
                name for part in self._parts if part.compiled is not None for name in part.compiled.reads
            ),
            ticks=dict(self._stateful.ticks),
            published=self._published,
            linked_shard=self._linked,
            linked_filters=sum(map(len, self._stateful.linked_filters)),
            reasons=tuple(self._reasons.values()),
            views=self._views,
        )

    # reading

    def _parts_of(self, number: int) -> Iterator[_Part]:
        run = self._stateful.runs[number].run
        for part in parts_of(run):
            compiled = None
            if isinstance(part.query, SequenceQuery):
                try:
                    compiled = compile_sequence(part.query, self._stateful.ticks)
                except SubscriptionError as fault:
                    id_ = fault.id or run.ids[int(part.positions[0])]
                    raise SubscriptionError(fault.reason, id_) from fault
            yield _Part(number, part, compiled)

    def _correlation(self, part: _Part, compiled: CompiledSequence) -> Correlation:
        if compiled.publishes is not None:
            return Correlation(reason=f"it publishes as `{compiled.publishes}`")
        linked = sorted(compiled.reads & self._published)
        if linked:
            return Correlation(reason=f"it reads `{linked[0]}`, which sequences publish")
        timed = [name for name, column in part.columns.items() if has_any(column, datetime)]
        return find_correlation(compiled.expression, timed, part.of.equal, rows_vary=part.of.is_template)

    # placing

    def _place(self, part: _Part, shards: Int32s, group: int = HOME) -> None:
        placement = self._placements[part.run]
        placement.groups[part.positions] = group
        placement.shards[part.positions] = shards

    def _by_id(self, part: _Part) -> Int32s:
        ids = self._stateful.runs[part.run].run.ids
        return shards_of(text_hashes(ids[place] for place in part.positions.tolist()), self._shards)

    def _place_view(self, part: _Part, query: View) -> None:
        names = [table.name for table in query.tables]
        linked = not self._published.isdisjoint(names)
        shards = np.full(len(part.positions), self._linked, np.int32) if linked else self._by_id(part)
        self._place(part, shards)
        self._views += np.bincount(shards, minlength=self._shards)
        for name in names:
            there = self._tables.setdefault(name, np.zeros(self._shards, dtype=np.bool_))
            there[shards] = True

    def _place_at_home(self, part: _Part, compiled: CompiledSequence, reason: str) -> None:
        linked = compiled.publishes is not None or not compiled.reads.isdisjoint(self._published)
        shards = np.full(len(part.positions), self._linked, np.int32) if linked else self._by_id(part)
        self._place(part, shards)
        self._routes += _static_routes(compiled.automaton, shards, part.columns)
        known = self._reasons.get(reason)
        example = (
            self._stateful.runs[part.run].run.ids[int(part.positions[0])] if known is None else known.example
        )
        count = len(part.positions) + (0 if known is None else known.count)
        self._reasons[reason] = MissingKey(reason, count, example)

    def _place_keyed(self, keyed: list[tuple[_Part, Correlation]]) -> tuple[KeyGroup, ...]:
        """Place the sequences with a key; of too many groups the largest are kept, and the others have no key."""
        found: dict[Scheme, _Members] = {}
        for part, correlation in keyed:
            found.setdefault(correlation.scheme, _Members()).size += len(part.positions)
        order = sorted(found, key=lambda scheme: (-found[scheme].size, scheme))
        numbers = {scheme: number for number, scheme in enumerate(order[:MOST_GROUPS])}
        for part, correlation in keyed:
            members = found[correlation.scheme]
            if correlation.scheme not in numbers:
                assert part.compiled is not None  # noqa: S101 - it has a key
                reason = f"there are {counted(len(order), 'key')}, and only the {MOST_GROUPS} most frequent are used"
                self._place_at_home(part, part.compiled, reason)
                continue
            number = numbers[correlation.scheme]
            if correlation.constants:
                hashes = _hashes_of_constants(correlation, part).hashes
                members.values = [*members.values, hashes]
                self._place(part, shards_of(hashes, self._shards), number)
            else:
                members.takes_any = True
                self._place(part, np.full(len(part.positions), EVERY, dtype=np.int32), number)
        return tuple(
            KeyGroup(
                scheme,
                found[scheme].size,
                None if found[scheme].takes_any else np.unique(np.concatenate(found[scheme].values)),
            )
            for scheme in numbers
        )


def _hashes_of_constants(correlation: Correlation, part: _Part) -> HashedColumn:
    """Return the hash of the key of each sequence."""
    count = len(part.positions)

    def hashed(constant: Value | Parameter) -> HashedColumn:
        if isinstance(constant, Parameter):
            return constant_hashes(part.columns[constant.name])
        return repeated_hash(constant, count)

    return combined([hashed(constant) for constant in correlation.constants])


def _static_routes(
    automaton: Automaton, shards: Int32s, columns: Mapping[str, Column]
) -> Iterator[StaticRoute]:
    """Yield the conditions of which an event must satisfy one: to begin, or to be the next of some step.

    Conditions on the event that was taken are not among them: an event that fails one ends a match.
    """
    inner = dict(automaton.inner)
    steps = [(automaton.stream, automaton.edges[0].test.static)]
    steps += [(node.stream, node.guard.test.static) for node in automaton.nodes]
    for stream, condition in steps:
        if stream not in inner:
            yield StaticRoute(stream, condition, shards, columns)
    for within in inner.values():
        yield from _static_routes(within, shards, columns)
