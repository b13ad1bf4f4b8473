"""Subscriptions with their queries, each with a number that is never given again and the generation in which it came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np

from tocsin.index.stateful import StatefulRun
from tocsin.matching import IdArray
from tocsin.model.options import SubscriptionOptions
from tocsin.structures.array_types import Bools, Int64s
from tocsin.structures.growth import grown
from tocsin.structures.interning import InterningTable
from tocsin.subscriptions.queries import QueryStore
from tocsin.subscriptions.registry import SubscriptionRegistry
from tocsin.subscriptions.runs import Run, run_numbers, run_of
from tocsin.subscriptions.sources import CompiledSubscription
from tocsin.subscriptions.template_batch import TemplateBatch

NOTHING: Final = -1
_FEW: Final = 64  # ids up to which each is looked up by itself


class CommonRun(NamedTuple):
    """Subscriptions that came together: the number of the group, and the stream that they publish."""

    number: int = NOTHING
    publishes: str | None = None


class _Columns(NamedTuple):
    number: Int64s  # [slot]
    added: Int64s  # [slot]
    group: Int64s  # [slot] NOTHING, or the subscriptions that came together with it
    publishes: Int64s  # [slot] NOTHING, or the code of a name


class HeldSubscriptions:
    """Subscriptions in the order they came, by id. Inside they are known by slots, which are given again."""

    def __init__(self) -> None:
        self.registry = SubscriptionRegistry()
        self.published: InterningTable[str] = InterningTable()  # names that subscriptions publish under
        self._queries = QueryStore()
        self._columns = _Columns(*(np.zeros(0, dtype=np.int64) for _ in _Columns._fields))

    def __len__(self) -> int:
        return len(self.registry)

    def __contains__(self, id_: object) -> bool:
        return id_ in self.registry

    def __iter__(self) -> Iterator[str]:
        return iter(self.registry)

    def add(
        self,
        new: Sequence[tuple[str, CompiledSubscription[Any], str]],
        numbers: Int64s,
        added: int,
        groups: Sequence[CommonRun],
    ) -> None:
        """Add subscriptions, each with its id, its text and its group, under these numbers."""
        begin = 0
        for options, run in groupby(new, key=lambda entry: entry[1].options):
            together = list(run)
            end = begin + len(together)
            slots = self._enter([id_ for id_, _, _ in together], options)
            self._queries.add_texts(slots, [text for _, _, text in together], options)
            of_each = groups[begin:end]
            codes = [self._acquire(one.publishes) for one in of_each]
            self._set(slots, numbers[begin:end], added, [one.number for one in of_each], codes)
            begin = end

    def add_rows(
        self,
        made: TemplateBatch[Any],
        options: SubscriptionOptions,
        numbers: Int64s,
        added: int,
        group: CommonRun,
    ) -> None:
        """Add the rows of a template under these numbers."""
        slots = self._enter(made.ids, options, made.hashes)
        self._queries.add_template(slots, made.template, made.rows, options)
        code = self._acquire(group.publishes, len(slots))
        self._set(slots, numbers, added, group.number, code)

    def restore(self, saved: StatefulRun) -> None:
        """Add the subscriptions of a run as they were."""
        run = saved.run
        positions = np.arange(len(run))
        codes = np.array(
            [NOTHING if name is None else self.published.code(name) for name in saved.publishes]
        )[saved.which if len(saved.which) else np.zeros(len(run), dtype=np.int64)]
        self.published.retain(codes[codes != NOTHING])
        if run.template is not None:
            slots = self._enter(run.ids, run.options[0])
            self._queries.add_template(slots, run.template.template, run.template.rows, run.options[0])
            self._set(slots, saved.numbers, saved.added, NOTHING, codes)
            return
        for options, places in groupby(positions.tolist(), key=run.options.__getitem__):
            at = np.fromiter(places, dtype=np.int64)
            slots = self._enter(run.ids.take(at), options)
            texts = run.texts[at.item(0) : at.item(-1) + 1]
            self._queries.add_texts(slots, texts, options)
            self._set(slots, saved.numbers[at], saved.added[at], NOTHING, codes[at])

    def remove(self, ids: Sequence[str]) -> None:
        """Remove subscriptions; each must be present."""
        if not ids:
            return
        slots = self.registry.remove_all(ids)
        self._queries.remove(slots)
        codes = self._columns.publishes[slots]
        self.published.release(codes[codes != NOTHING])

    def slots(self, ids: Sequence[str]) -> IdArray:
        """Return the slots of subscriptions that are present."""
        if len(ids) <= _FEW:
            return np.fromiter(map(self.registry.number, ids), dtype=np.int64, count=len(ids))
        return self.registry.find(ids, np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids)))[1]

    def groups(self, slots: IdArray) -> Int64s:
        """Return the number of each slot's group."""
        return self._columns.group[slots]

    def are_publishing(self, slots: IdArray) -> Bools:
        """Tell which of these publish a stream."""
        return np.asarray(self._columns.publishes[slots] != NOTHING)

    def set_groups(self, slots: IdArray, groups: Sequence[int]) -> None:
        """Set the number of each slot's group, or one for all."""
        self._columns.group[slots] = groups

    def is_same(self, id_: str, other: CompiledSubscription[Any]) -> bool:
        """Tell whether a subscription that is present has the same query and options as another."""
        slot = self.registry.number(id_)
        return self._options(slot) == other.options and self._queries.is_same(slot, other.text, other.read)

    def are_same(self, made: TemplateBatch[Any], options: SubscriptionOptions) -> Bools:
        """Tell which rows of a template are present with the same constants and options."""
        found = np.zeros(len(made.ids), dtype=np.bool_)
        positions, slots = self.registry.find(made.ids, made.hashes)
        columns = {name: column[positions] for name, column in made.rows.columns.items()}
        same = self._queries.is_same_row(slots, made.template, columns)
        for place in np.flatnonzero(same).tolist() if self._has_options(options) else ():
            same[place] = self._options(slots.item(place)) == options
        found[positions] = same
        return found

    def runs(self) -> list[StatefulRun]:
        """Return all subscriptions, in the order they came. Nothing changes the result later."""
        return [self._run(slots, run_of(self.registry, self._queries, slots)) for slots in self.run_slots()]

    def run_slots(self) -> list[IdArray]:
        """Return the slots of each run."""
        return run_numbers(self.registry, self._queries)

    def _run(self, slots: IdArray, run: Run) -> StatefulRun:
        columns = self._columns
        codes, which = np.unique(columns.publishes[slots], return_inverse=True)
        names = tuple(None if code == NOTHING else self.published.value(code) for code in codes.tolist())
        chosen = which.astype(np.int64) if len(names) > 1 else np.zeros(0, dtype=np.int64)
        return StatefulRun(run, columns.number[slots], columns.added[slots], names, chosen)

    def _acquire(self, name: str | None, uses: int = 1) -> int:
        """Return the code of a published stream, with so many more uses."""
        return NOTHING if name is None else self.published.acquire(name, uses)

    def _enter(
        self, ids: Sequence[str], options: SubscriptionOptions, hashes: Int64s | None = None
    ) -> IdArray:
        slots = np.array(self.registry.reserve(len(ids)), dtype=np.int64)
        self.registry.enter(slots, ids, options.validity, hashes)
        self._columns = grown(self._columns, _Columns._fields, self.registry.capacity)
        return slots

    def _set(
        self,
        slots: IdArray,
        numbers: Int64s,
        added: Int64s | int,
        groups: Sequence[int] | int,
        codes: Sequence[int] | Int64s | int,
    ) -> None:
        columns = self._columns
        columns.number[slots], columns.added[slots] = numbers, added
        columns.group[slots], columns.publishes[slots] = groups, codes

    def _options(self, slot: int) -> SubscriptionOptions:
        queries = self._queries
        weight = queries.weights.get(slot, 1.0)
        return SubscriptionOptions(
            self.registry.validity(slot), queries.owner(slot), weight, queries.witness(slot)
        )

    def _has_options(self, options: SubscriptionOptions) -> bool:
        """Tell whether any options differ, as far as that is quickly known."""
        return options != SubscriptionOptions() or self._queries.has_options or self.registry.has_validity
