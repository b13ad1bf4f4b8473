"""The runtime of views as the engine's stages call it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from msgspec.structs import astuple
from numpy.typing import NDArray

from tocsin.engine.altering import Altering
from tocsin.engine.answers import Altered, ViewChange
from tocsin.engine.results import HeldViews
from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model import Event, Query, Subscription, View
from tocsin.model.subscription import Answer
from tocsin.views.compiled import CompiledView
from tocsin.views.explanation import ViewExplanation
from tocsin.views.runtime import ViewRuntime


class Views:
    """Collects the events of tables until `release`. Called under the engine's lock."""

    def __init__(self, matcher: str | None = None) -> None:
        self.runtime = ViewRuntime(matcher)
        self.tables = self.runtime.tables
        self._taken: list[tuple[int, Event, int]] = []
        self._untold = self.runtime._unreported  # noqa: SLF001
        self.asked: Callable[[int], Query] | None = None

    def __len__(self) -> int:
        return len(self.runtime)

    @property
    def most_at_once(self) -> int:
        """Return the number of events that may be processed together."""
        return self.runtime.most_at_once

    def declare(self, name: str, key: str | Sequence[str]) -> None:
        """Declare a table."""
        self.tables.declare(name, key)

    def save(self, path: Path) -> None:
        """Write all tables to a file."""
        self.tables.save(path)

    def load(self, path: Path) -> tuple[str, ...]:
        """Read tables from a file."""
        return self.tables.load(path)

    def is_table(self, stream: str | None) -> bool:
        """Tell whether a stream is a table."""
        return stream in self.tables

    def check(self, event: Event) -> None:
        """Raise `EventError` for an event that cannot be a row of its table."""
        self.runtime.check(event)

    def take(self, event: Event, mark: int, now: int) -> None:
        """Collect an event of a table."""
        if event.stream in self.tables:
            self._taken.append((mark, event, now))

    def release(self) -> list[Altered]:
        """Process the collected events, and return the changes."""
        taken, self._taken = self._taken, []
        found = self.runtime.process([event for _, event, _ in taken])
        altered: list[Altered] = []
        for at, row in enumerate(found.rows.tolist()):
            mark, event, now = taken[row]
            number, difference = int(found.numbers[at]), found.differences(at)
            change = ViewChange(row, number, found.old_answer(at), found.new_answer(at), *difference)
            altered.append(Altered(mark, event, now, change))
        return altered

    def _catch_up(self) -> None:
        for altered in self.release() if self._taken else ():
            self.keep_untold(altered.change)

    def upsert(self, name: str, rows: pa.Table, ends: NDArray[np.int64]) -> Altering:
        """Put an Arrow table's rows into a table, and return the changes."""
        self._catch_up()
        found = self.runtime.process_table(name, rows, ends)
        return Altering(found.rows, found.numbers, found.old, found.new)

    def plan(self, view: View, id_: str, columns: Mapping[str, Column] | None = None) -> CompiledView:
        """Compile a view."""
        return self.runtime.compile(view, id_, columns)

    def add(self, numbers: IdArray, plan: CompiledView, columns: Mapping[str, Column], id_: str) -> None:
        """Add subscriptions."""
        self._catch_up()
        self.runtime.add(numbers, plan, columns, id_)

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove subscriptions."""
        self.runtime.remove(numbers)

    def answer(self, number: int) -> Answer:
        """Return a view's present answer."""
        self._catch_up()
        return self.runtime.answer(number)

    def explain(self, number: int, held: Subscription, event: Event) -> ViewExplanation:
        """Explain an event to a view."""
        self._catch_up()
        return self.runtime.explain(number, held, event)

    @property
    def has_untold(self) -> bool:
        """Tell whether a change was not reported."""
        return bool(self._untold)

    def keep_untold(self, change: ViewChange) -> None:
        """Remember the last reported answer."""
        self._untold.setdefault(change.number, change.old)

    def told_last(self, change: ViewChange) -> Answer:
        """Return the last reported answer."""
        return self._untold.pop(change.number, change.old) if self._untold else change.old

    def stats(self) -> HeldViews:
        """Return sizes and counts."""
        return HeldViews(*astuple(self.runtime.stats()))
