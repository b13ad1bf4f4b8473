"""One time line: events in the order of their end, and the sequences that are run over them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.engine.book import ALWAYS, FOREVER, Terms
from tocsin.engine.tables import TableRows
from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model import Event
from tocsin.sequences.compilation import CompiledSequence
from tocsin.sequences.matcher import InspectableSequenceMatcher
from tocsin.sequences.matches import SequenceMatches
from tocsin.sequences.timed_batch import TimedBatch

Tell: TypeAlias = Callable[[Sequence[int], TimedBatch, SequenceMatches], object]
"""Is told what events have reached the sequences, and what they completed, before further ones do.

Each goes by the mark of the event whose coming gave it its turn.
"""


class _Added(Struct, eq=False):
    """Subscriptions that begin later, and those of them that have been removed meanwhile."""

    numbers: IdArray
    prepared: CompiledSequence
    columns: Mapping[str, Column]
    gone: set[int]


class Timeline:
    """Gives events to what runs sequences, each as soon as none that ends before it can come within the bound.

    An event waits until one has come that ends `disorder` ticks later or more; of those that end together, the first
    to come goes first. One that comes after another that ends more than `disorder` ticks later is late. A subscription sees the events that end
    after all that had come when it was added, and within its own time: it is given to the runner just before the
    first event that it may see, and taken away before the first that ends when its time is over.
    """

    def __init__(self, runner: InspectableSequenceMatcher, disorder: int) -> None:
        self.runner = runner
        self._disorder = disorder
        self._latest = ALWAYS  # the largest end that has come
        self._gone_to = ALWAYS  # the largest end whose turn has come
        self._ready: list[tuple[int, int, Event]] = []  # whose turn has come, with the mark at which it did
        self._waiting: list[tuple[int, int, Event]] = []  # a heap, by end and mark
        self._order = count()
        self._begins: list[tuple[int, int, _Added]] = []  # a heap, by the first end that is seen
        self._begin_of: dict[int, tuple[int, _Added]] = {}  # of those that have not begun
        self._ends: list[
            tuple[int, int, IdArray]
        ] = []  # a heap, by the first end that is not seen; some are stale
        self._end_of: dict[int, int] = {}
        self._ceased: set[int] = set()  # those that are run no more, but have not been removed

    @property
    def waiting(self) -> int:
        """Return how many events wait."""
        return len(self._waiting)

    def begins(self, number: int) -> int | None:
        """Return the first end that a subscription will see, if it has not begun."""
        found = self._begin_of.get(number)
        return None if found is None else found[0]

    def has_ceased(self, number: int) -> bool:
        """Tell whether a subscription is run no more, since its time was over at an event that has come."""
        return number in self._ceased

    def add(
        self,
        numbers: IdArray,
        prepared: CompiledSequence,
        columns: Mapping[str, Column],
        terms: Terms,
        heard: int = ALWAYS,
    ) -> None:
        """Add subscriptions; they see nothing that ends at `heard` or before."""
        begin = max(terms.valid_from, self._latest + 1, heard + 1)
        if begin <= self._gone_to + 1:
            self.runner.add(numbers, prepared, columns)
        else:
            added = _Added(numbers, prepared, columns, set())
            heappush(self._begins, (begin, next(self._order), added))
            self._begin_of.update(dict.fromkeys(numbers.tolist(), (begin, added)))
        if terms.valid_until != FOREVER:
            heappush(self._ends, (terms.valid_until, next(self._order), numbers))
            self._end_of.update(dict.fromkeys(numbers.tolist(), terms.valid_until))

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; those that are not there are passed over."""
        if self._begin_of or self._end_of:
            for number in numbers.tolist():
                self._end_of.pop(number, None)
                begun = self._begin_of.pop(number, None)
                if begun is not None:
                    begun[1].gone.add(number)
        if self._ceased:
            self._ceased.difference_update(numbers.tolist())
        self.runner.remove(numbers)

    def is_late(self, event: Event) -> bool:
        """Tell whether an event comes later than the bound allows, or ends before what was let go already."""
        return event.end < max(self._gone_to, self._latest - self._disorder)

    def take(self, event: Event, mark: int) -> bool:
        """Let an event wait for its turn, or return False if it is late; of marks, a later event has a larger one."""
        if self.is_late(event):
            return False
        self._latest = max(self._latest, event.end)
        if not self._disorder:
            self._ready.append((event.end, mark, event))
            self._gone_to = event.end
            return True
        heappush(self._waiting, (event.end, mark, event))
        self._line_up(self._latest - self._disorder, mark)
        return True

    def release(self, tell: Tell) -> None:
        """Give the runner all events whose turn it is."""
        ready, self._ready = self._ready, []
        begin = 0
        while begin < len(ready):
            self._change(ready[begin][0])
            moment = self._next_change()
            end = len(ready) if moment is None else bisect_left(ready, moment, key=itemgetter(0))
            part = TimedBatch.of([event for _, _, event in ready[begin:end]])
            tell([mark for _, mark, _ in ready[begin:end]], part, self.runner.process(part))
            begin = end

    def flush(self, tell: Tell, mark: int) -> None:
        """Give the runner all events that wait; they go by this mark."""
        self._line_up(self._latest, mark)
        self.release(tell)

    def takes_columns(self, ends: NDArray[np.int64]) -> bool:
        """Tell whether events that end like this may go to the runner at once: none waits, and none is late."""
        if self._disorder or self._waiting or not len(ends):
            return False
        return bool(ends[0] >= self._gone_to and (ends[1:] >= ends[:-1]).all())

    def take_columns(self, rows: TableRows, mark: int, tell: Tell) -> None:
        """Give the runner a table's rows, for which `takes_columns`, without making events of them.

        `mark` is that of the first.
        """
        ends = rows.ends
        begin = 0
        while begin < len(ends):
            self._change(int(ends[begin]))
            moment = self._next_change()
            end = len(ends) if moment is None else int(np.searchsorted(ends, moment))
            self._latest = self._gone_to = int(ends[end - 1])
            part = rows.arrivals(begin, end)
            tell(range(mark + begin, mark + end), part, self.runner.process(part))
            begin = end

    def _line_up(self, until: int, mark: int) -> None:
        while self._waiting and self._waiting[0][0] <= until:
            self._gone_to, _, event = heappop(self._waiting)
            self._ready.append((self._gone_to, mark, event))

    def _next_change(self) -> int | None:
        """Return the next end before which a subscription begins or ceases to be run."""
        return min((heap[0][0] for heap in (self._begins, self._ends) if heap), default=None)

    def _change(self, moment: int) -> None:
        """Give the runner what begins, and take away what ceases, before an event that ends then."""
        while self._begins and self._begins[0][0] <= moment:
            added = heappop(self._begins)[2]
            kept = np.array([number not in added.gone for number in added.numbers.tolist()], dtype=np.bool_)
            columns = {name: column[kept] for name, column in added.columns.items()}
            for number in added.numbers[kept].tolist():
                del self._begin_of[number]
            if kept.any():
                self.runner.add(added.numbers[kept], added.prepared, columns)
        while self._ends and self._ends[0][0] <= moment:
            until, _, numbers = heappop(self._ends)
            over = [number for number in numbers.tolist() if self._end_of.get(number) == until]
            for number in over:
                del self._end_of[number]
            self._ceased.update(over)
            self.runner.remove(np.array(over, dtype=np.int64))
