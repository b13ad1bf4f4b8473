"""A few conjunctions without an index: generated code for single events, arrays for the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tocsin.matching.batches import EventBatch, IdArray, Matches
from tocsin.matching.column_scan import scan
from tocsin.matching.generated_code import Search, generate
from tocsin.matching.oracle import Oracle
from tocsin.matching.word_truths import WordTruths
from tocsin.model.values import Value

_COMPILED_AFTER: Final = 16  # events; generating the code takes as long as interpreting about as many
_MOST_COMPILED: Final = 10_000  # expressions; it takes 25 µs for each, and an event has to wait
_NO_IDS: Final = np.empty(0, dtype=np.int64)
_BY_COLUMN: Final = 64  # rows of a table from which arrays are quicker


class DirectEvaluation:
    """Answers as the oracle does, and for the expressions that it stores, but sooner."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._version = -1
        self._search: Search | None = None
        self._events = 0  # since the expressions changed
        self._words = WordTruths()

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""
        if events.has_columns and len(events) >= _BY_COLUMN:
            return scan(self._oracle, events, self._words)
        search = self._current_search(len(events))
        if search is None:
            return self._oracle.match(events)
        ids: list[int] = []
        offsets = np.zeros(len(events) + 1, dtype=np.int64)
        for place in range(len(events)):
            if not events.is_refused(place):
                ids += sorted(search(events.attributes(place)))
            offsets[place + 1] = len(ids)
        return Matches(offsets, np.array(ids, dtype=np.int64))

    def match_one(self, attributes: Mapping[str, Value]) -> IdArray:
        """Return the ids of the subscriptions that one event satisfies, ascending and without repeats."""
        search = self._search
        if search is None or self._version != self._oracle.version:
            search = self._current_search(1)
            if search is None:
                return self._oracle.match_one(attributes)
        found = search(attributes)
        return np.array(sorted(found), dtype=np.int64) if found else _NO_IDS

    def _current_search(self, events: int) -> Search | None:
        """Return the generated code; None until the expressions have stayed the same for some events."""
        if self._version != self._oracle.version:
            self._version, self._search, self._events = self._oracle.version, None, 0
        if self._search is None:
            self._events += events
            if self._events > _COMPILED_AFTER and len(self._oracle) <= _MOST_COMPILED:
                self._search = generate(self._oracle.expressions())
        return self._search
