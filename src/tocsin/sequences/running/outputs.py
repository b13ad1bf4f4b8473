"""Outputs as people read them: the events of each step, and the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tocsin.matching import IdArray
from tocsin.model.event import Event
from tocsin.model.values import Value
from tocsin.sequences.automaton import Output, Part
from tocsin.sequences.matches import SequenceMatch, Step, published_event
from tocsin.sequences.programs import Tag
from tocsin.sequences.running.events import KeptEvents
from tocsin.sequences.running.forms import FormTable
from tocsin.sequences.running.holders import Holder
from tocsin.sequences.running.state import (
    FORM,
    OUTPUT_ROWS,
    OUTPUTS,
    State,
)
from tocsin.sequences.running.values import ValueCodec

_END: Final = 0
_START: Final = 2
_BIRTH: Final = 3
_FIRST: Final = 4
_WHEN: Final = 5
_ARRIVAL: Final = 1
_NOTHING: Final[Mapping[str, Value | None]] = {}


class OutputReader:
    """Reads outputs while the state that they came of is still there."""

    def __init__(self, state: State, forms: FormTable, words: ValueCodec, events: KeptEvents) -> None:
        self._state = state
        self._forms = forms
        self._words = words
        self._events = events
        self._rows = state.outputs.rows
        self._slots = state.outputs.slots
        self._layouts: dict[int, Output] = {}

    def settled(self) -> OutputReader:
        """Return it with what it needs of its own, so that subscriptions may go before it is asked."""
        counters = self._state.counters
        self._rows = self._rows[: counters[OUTPUTS]].copy()
        self._slots = self._slots[: counters[OUTPUT_ROWS]].copy()
        self._layouts = {end: self._layout(end) for end in np.unique(self._rows[:, _END]).tolist()}
        return self

    def ends(self, outputs: IdArray) -> IdArray:
        """Return when each of some outputs ended."""
        return np.asarray(self._rows[outputs, _WHEN])

    def match(self, row: int) -> SequenceMatch:
        """Return one output."""
        layout = self._layout(int(self._rows[row, _END]))
        first = int(self._rows[row, _FIRST])
        return SequenceMatch(
            tuple(self._step(part, first) for part in layout.parts),
            {name: self._value(first + slot) for name, slot in layout.values},
        )

    def values(self, outputs: IdArray) -> list[Mapping[str, Value | None]]:
        """Return what outputs selected or computed."""
        found: list[Mapping[str, Value | None]] = [_NOTHING] * len(outputs)
        ends, firsts = self._rows[outputs, _END], self._rows[outputs, _FIRST]
        for end in np.unique(ends).tolist():
            layout = self._layout(end)
            for place in np.flatnonzero(ends == end).tolist() if layout.values else ():
                first = int(firsts[place])
                found[place] = {name: self._value(first + slot) for name, slot in layout.values}
        return found

    def published(self, row: int, holder: Holder) -> tuple[Event, int, int]:
        """Return an output as an event, when the first event it came of ended, and which arrival it came of."""
        layout = self._layout(int(self._rows[row, _END]))
        start, end = int(self._rows[row, _START]), int(self._rows[row, _WHEN])
        assert holder.publish is not None  # noqa: S101 - it is asked of those that publish
        event = published_event(
            holder.publish, self.match(row), selected=layout.selected, start=start, end=end
        )
        birth = int(self._rows[row, _BIRTH]) if holder.internal else end
        return event, birth, int(self._rows[row, _ARRIVAL])

    def _layout(self, end: int) -> Output:
        known = self._layouts.get(end)
        if known is None:
            output = self._forms[int(self._state.places.rows[end, FORM])].output
            assert output is not None  # noqa: S101 - only ends have outputs
            known = self._layouts[end] = output
        return known

    def _value(self, slot: int) -> Value | None:
        return self._words.decoded(int(self._slots[slot, 0]), int(self._slots[slot, 1]))

    def _step(self, part: Part, first: int) -> Step:
        chain = None
        if part.chain is not None:
            chain = self._chain(first + part.chain)
        begun = self._event(first + part.first)
        same = self._slots[first + part.first, 1] == self._slots[first + part.last, 1]
        return Step(part.alias, begun, begun if same else self._event(first + part.last), chain)

    def _event(self, slot: int) -> Event:
        number = int(self._slots[slot, 1])
        event = self._events.event(number) if self._slots[slot, 0] == Tag.EVENT else None
        assert event is not None  # noqa: S101 - events are kept while an output refers to them
        return event

    def _chain(self, slot: int) -> tuple[Event, ...]:
        links = self._state.arena.links
        link = int(self._slots[slot, 1]) if self._slots[slot, 0] == Tag.CHAIN else -1
        found: list[Event] = []
        while link >= 0:
            event = self._events.event(int(links[link, 0]))
            assert event is not None  # noqa: S101 - events are kept while a chain refers to them
            found.append(event)
            link = int(links[link, 1])
        return tuple(reversed(found))
