"""The sequences and views of an index in memory, and the filters that see what these sequences publish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from tocsin.index.contents import written
from tocsin.index.generations import StatefulEntry
from tocsin.index.numbered import NOTHING, CommonRun, HeldSubscriptions
from tocsin.index.query_checks import QueryChecks
from tocsin.index.stateful import StatefulParts, StatefulSubscriptions
from tocsin.index.storage import Storage
from tocsin.language import Template, to_text
from tocsin.language.check import QuerySource, read_query, read_text
from tocsin.language.sequence_shapes import remember_sequence, shaped_sequence
from tocsin.language.template.columns import Rows
from tocsin.model import Filter
from tocsin.model.options import SubscriptionOptions
from tocsin.model.ticks import Tick, read_tick
from tocsin.sequences.runtime import CompiledSequences
from tocsin.structures.array_types import Bools, Int64s
from tocsin.subscriptions.sources import CompiledSubscription, compile_checked
from tocsin.subscriptions.template_batch import TemplateBatch
from tocsin.views.catalog import TableCatalog

NewSubscriptions: TypeAlias = Mapping[str, CompiledSubscription[Any]]


class GivenText(NamedTuple):
    """A subscription that was read elsewhere."""

    id: str
    text: str
    options: SubscriptionOptions

    @classmethod
    def of(cls, id_: str, one: CompiledSubscription[Any]) -> GivenText:
        """Return a subscription with its text."""
        return cls(id_, _text_of(one), one.options)


class StatefulContents:
    """Sequences and views by id, with the tables and ticks that they need.

    A subscription gets a number that no other ever has, again whenever its query or its options change. The filters on streams
    that sequences publish are here too, as `linked`; `linked_streams` are the streams whose filters are known to be there.
    """

    def __init__(self) -> None:
        self.tables = TableCatalog()
        self.linked = HeldSubscriptions()
        self.linked_streams: frozenset[str] = frozenset()
        self.is_changed = False
        self.is_torn = False  # whether a change was interrupted
        self._held = HeldSubscriptions()
        self._ticks: dict[str, int] = {}  # as they were loaded; `_checks` knows the present ones
        self._checks: QueryChecks | None = None  # made when they are needed
        self._groups = 0  # ever made
        self._left: Counter[int] = Counter()  # by group
        self._next_number = 0
        self._entry: StatefulEntry | None = None

    def load(self, saved: StatefulSubscriptions, entry: StatefulEntry) -> None:
        """Fill empty contents with a generation's."""
        for name, key in saved.tables.items():
            self.tables.declare(name, key)
        self._ticks = dict(saved.ticks)
        for run in saved.runs:
            self._held.restore(run)
        for run in saved.linked_filters:
            self.linked.restore(run)
        self.linked_streams = saved.linked_streams
        self._next_number, self._entry = entry.next_number, entry

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, id_: object) -> bool:
        return len(self._held) > 0 and id_ in self._held  # a wide index of filters is asked often

    def present(self, ids: Sequence[str]) -> list[str]:
        """Return those of these ids that are sequences or views."""
        return self._held.registry.present(ids) if len(self._held) else []

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    # declarations

    def declare_table(self, name: str, key: str | Sequence[str]) -> None:
        """Declare a stream to be a table with this key."""
        before = len(self.tables)
        self.tables.declare(name, key)
        self.is_changed |= len(self.tables) > before

    def declare_tick(self, stream: str, tick: Tick) -> None:
        """Set the length of a stream's ticks, before any sequence reads it."""
        if self._ticks.get(stream) == read_tick(tick):
            return
        self._present_checks().declare(stream, tick)
        self.is_changed = True

    @property
    def ticks(self) -> dict[str, int]:
        """Return the microseconds of a tick of each stream for which they were declared.

        A stream that sequences read and no sequence publishes any more keeps the ticks that it had from its publisher.
        """
        if self._checks is None:
            return self._ticks
        declared, published = self._checks.declared, self._held.published.codes
        return {
            stream: tick
            for stream, tick in self._checks.ticks.items()
            if stream in declared or stream not in published
        }

    @property
    def published(self) -> frozenset[str]:
        """Return the streams that sequences publish."""
        return frozenset(self._held.published.codes)

    # subscriptions

    def compile(
        self, id_: str, source: QuerySource, options: SubscriptionOptions
    ) -> CompiledSubscription[Any]:
        """Return any subscription compiled, filters in their normal form; or raise `TocsinError`."""
        text = source if isinstance(source, str) else None
        sequence = None if text is None or not _may_have_steps(text) else shaped_sequence(text)
        if sequence is not None:
            shared = self._present_checks().compile_shape(sequence, id_, options)
            return CompiledSubscription(sequence, shared, options, text)
        checked = read_query(source)
        if isinstance(checked.query, Filter):
            return compile_checked(id_, source, checked, options)
        compiled = self._present_checks().compile_query(checked.query, id_, options)
        if text is not None and not checked.warnings:
            remember_sequence(text, checked.query)
        return CompiledSubscription(checked.query, compiled, options, text)

    def compile_template(
        self, template: Template, rows: Rows, id_rule: str | None, options: SubscriptionOptions
    ) -> TemplateBatch[Any]:
        """Return the rows of a template of sequences or views, compiled."""
        checks = self._present_checks()

        def compile_rows(parsed: Template, bound: Any, ids: Sequence[str]) -> Any:
            return checks.compile_rows(parsed, bound, ids, options)

        return TemplateBatch.of(template, rows, id_rule, compile_rows)

    def is_same(self, id_: str, other: CompiledSubscription[Any]) -> bool:
        """Tell whether a sequence or view is present with the same query and options."""
        return id_ in self._held and not other.is_filter and self._held.is_same(id_, other)

    def are_same(self, made: TemplateBatch[Any], options: SubscriptionOptions) -> Bools:
        """Tell which rows of a template are present with the same constants and options."""
        return self._held.are_same(made, options)

    def exchange(self, removed: Sequence[str], new: NewSubscriptions, generation: int) -> None:
        """Replace sequences and views by new ones of a generation; if one is refused, nothing changes."""
        if not removed and not new:
            return
        if not new:
            self._remove(removed)
            return
        with self._replacing(removed) as checks:
            groups = [self._add_group(checks, one.compiled, 1, id_) for id_, one in new.items()]
        with self._whole():
            self._held.remove(removed)
            entries = [(id_, one, _text_of(one)) for id_, one in new.items()]
            self._held.add(entries, self._numbers(len(new)), generation, groups)

    def exchange_rows(
        self,
        removed: Sequence[str],
        made: TemplateBatch[Any],
        options: SubscriptionOptions,
        generation: int,
    ) -> None:
        """Replace sequences and views by the rows of a template; if they are refused, nothing changes."""
        if not len(made.ids):
            self._remove(removed)
            return
        with self._replacing(removed) as checks:
            group = self._add_group(checks, made.compiled, len(made.ids), "template")
        with self._whole():
            self._held.remove(removed)
            self._held.add_rows(made, options, self._numbers(len(made.ids)), generation, group)

    def expired(self, now: int) -> list[str]:
        """Return the ids of the sequences and views that have expired by `now`; each is returned once."""
        return self._held.registry.expired(now)

    def _remove(self, ids: Sequence[str]) -> None:
        if ids:
            with self._replacing(ids):
                pass
            with self._whole():
                self._held.remove(ids)

    # filters that see what sequences publish

    def link(self, filters: NewSubscriptions, generation: int) -> None:
        """Add those of new filters that read a stream whose filters are linked."""
        if not self.linked_streams:
            return
        linked = {id_: one for id_, one in filters.items() if _stream(one) in self.linked_streams}
        if linked:
            entries = [(id_, one, _text_of(one)) for id_, one in linked.items()]
            count = len(linked)
            self.linked.add(entries, self._numbers(count), generation, [CommonRun()] * count)
            self.is_changed = True

    def link_rows(self, made: TemplateBatch[Any], options: SubscriptionOptions, generation: int) -> None:
        """Add the filters of a template's rows if they read a stream whose filters are linked."""
        query = made.template.query
        if isinstance(query, Filter) and query.stream in self.linked_streams and len(made.ids):
            numbers = self._numbers(len(made.ids))
            self.linked.add_rows(made, options, numbers, generation, CommonRun())
            self.is_changed = True

    def unlink(self, ids: Sequence[str]) -> None:
        """Remove those of these filters that are linked."""
        if len(self.linked):
            linked = self.linked.registry.present(ids)
            self.linked.remove(linked)
            self.is_changed |= bool(linked)

    def relink(self, streams: frozenset[str], found: Sequence[GivenText], generation: int) -> None:
        """Make these the streams whose filters are linked; `found` are all filters on those that are new."""
        if streams == self.linked_streams:
            return
        gone = self.linked_streams - streams
        if gone:
            runs = self.linked.runs()
            ended = [one.id for run in runs for one in run if _stream_of(one.text) in gone]
            self.linked.remove(ended)
        entries = [
            (id_, CompiledSubscription(None, None, options, text), text) for id_, text, options in found
        ]
        count = len(entries)
        self.linked.add(entries, self._numbers(count), generation, [CommonRun()] * count)
        self.linked_streams = streams
        self.is_changed = True

    # saving

    def save(self, storage: Storage) -> StatefulEntry | None:
        """Write the contents unless they are those of the saved entry; return the entry, or None if there is nothing."""
        if not self.is_changed:
            return self._entry
        if not (self._next_number or len(self.tables) or self.ticks):
            return None
        parts = StatefulParts.of(
            self._held.runs(), self.linked.runs(), self.tables.keys, self.ticks, self.linked_streams
        )
        digest = parts.digest()
        if self._entry is None or self._entry.digest != digest:
            folder = written(storage, "stateful", parts.write)
            self._entry = StatefulEntry(folder, digest, len(self), len(self.linked), self._next_number)
        return replace(self._entry, next_number=self._next_number)

    def saved(self, entry: StatefulEntry | None) -> None:
        """Take note that the contents were published with this entry."""
        self._entry, self.is_changed = entry, False

    # steps

    def _present_checks(self) -> QueryChecks:
        """Return the checks, which know all present sequences."""
        if self._checks is not None:
            return self._checks
        checks = self._checks = QueryChecks(self.tables, self._ticks)
        for slots, run in zip(self._held.run_slots(), self._held.runs(), strict=True):
            template = run.run.template
            if template is not None:
                options, query = run.run.options[0], template.template.query
                columns = template.rows.columns
                compiled = checks.compile_query(query, "template", options, columns)
                group = self._add_group(checks, compiled, len(slots), "template")
                self._held.set_groups(slots, [group.number])
                continue
            groups = [
                self._add_group(checks, self.compile(one.id, one.text, one.options).compiled, 1, one.id)
                for one in run
            ]
            self._held.set_groups(slots, [one.number for one in groups])
        return checks

    def _add_group(self, checks: QueryChecks, compiled: object, size: int, id_: str) -> CommonRun:
        """Add subscriptions that came together, and return their group; views are in none."""
        if not isinstance(compiled, CompiledSequences):
            return CommonRun()
        group, self._groups = self._groups, self._groups + 1
        checks.add(group, compiled, id_)
        self._left[group] = size
        return CommonRun(group, compiled.compiled.publishes)

    @contextmanager
    def _replacing(self, removed: Sequence[str]) -> Iterator[QueryChecks]:
        """Add to the checks in the block, in place of subscriptions that are then removed from the checks.

        If the block fails, all is as before.
        """
        checks = self._present_checks()
        slots = self._held.slots(removed)
        groups = self._held.groups(slots)
        gone = Counter(groups[groups != NOTHING].tolist())
        ended = [group for group, count in gone.items() if count == self._left[group]]
        first = self._groups
        checks.suspend(set(ended).intersection(groups[self._held.are_publishing(slots)].tolist()))
        try:
            yield checks
        except BaseException:
            checks.remove(range(first, self._groups))
            checks.resume()
            for group in range(first, self._groups):
                self._left.pop(group, None)
            raise
        checks.remove(ended)
        self._left.subtract(gone)
        for group in ended:
            del self._left[group]

    def _numbers(self, count: int) -> Int64s:
        begin, self._next_number = self._next_number, self._next_number + count
        return np.arange(begin, self._next_number, dtype=np.int64)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Mark the contents as changed, and as torn if the block is interrupted, so that they are never published."""
        was_torn, self.is_torn = self.is_torn, True
        self.is_changed = True
        yield
        self.is_torn = was_torn


def _text_of(one: CompiledSubscription[Any]) -> str:
    return to_text(one.query) if one.text is None else one.text


def _stream(one: CompiledSubscription[Any]) -> str | None:
    query = one.query
    return query.stream if isinstance(query, Filter) else None


def _stream_of(text: str) -> str | None:
    query = read_text(text)
    return query.stream if isinstance(query, Filter) else None


def _may_have_steps(text: str) -> bool:
    """Tell quickly whether a text may be a sequence; one in capitals is only read more slowly."""
    return "next" in text or "fold" in text
