"""Reading outputs: the steps and values of matches, and the events that sequences publish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tocsin.matching import IdArray
from tocsin.model.event import Event
from tocsin.model.values import Value
from tocsin.sequences._kernels.instructions import Tag
from tocsin.sequences.automaton import Output, Part
from tocsin.sequences.matches import SequenceMatch, Step, published_event
from tocsin.sequences.running.events import EventStore
from tocsin.sequences.running.forms import FormTable
from tocsin.sequences.running.holders import Holder
from tocsin.sequences.running.state import LinkColumn, OutputColumn, PlaceColumn, State, StateCounter
from tocsin.sequences.running.values import ValueCodec

_NO_VALUES: Final[Mapping[str, Value | None]] = {}


class OutputReader:
    """Reads outputs until the next events are processed."""

    def __init__(self, state: State, forms: FormTable, codec: ValueCodec, events: EventStore) -> None:
        self._state = state
        self._forms = forms
        self._codec = codec
        self._events = events
        self._rows = state.outputs.rows
        self._slots = state.outputs.slots
        self._layouts: dict[int, Output] = {}

    def detached(self) -> OutputReader:
        """Return the reader with copies of its own, so that subscriptions may be removed before it is used."""
        counters = self._state.counters
        self._rows = self._rows[: counters[StateCounter.OUTPUTS]].copy()
        self._slots = self._slots[: counters[StateCounter.OUTPUT_SLOTS]].copy()
        ends = np.unique(self._rows[:, OutputColumn.END])
        self._layouts = {end: self._layout(end) for end in ends.tolist()}
        return self

    def match(self, output: int) -> SequenceMatch:
        """Return the steps and values of an output."""
        layout = self._layout(int(self._rows[output, OutputColumn.END]))
        base = int(self._rows[output, OutputColumn.BASE])
        return SequenceMatch(
            tuple(self._step(part, base) for part in layout.parts),
            {name: self._value(base + slot) for name, slot in layout.values},
        )

    def values(self, outputs: IdArray) -> list[Mapping[str, Value | None]]:
        """Return the selected or computed values of outputs."""
        found: list[Mapping[str, Value | None]] = [_NO_VALUES] * len(outputs)
        ends, bases = self._rows[outputs, OutputColumn.END], self._rows[outputs, OutputColumn.BASE]
        for end in np.unique(ends).tolist():
            layout = self._layout(end)
            for i in np.flatnonzero(ends == end).tolist() if layout.values else ():
                base = int(bases[i])
                found[i] = {name: self._value(base + slot) for name, slot in layout.values}
        return found

    def published(self, output: int, holder: Holder) -> tuple[Event, int, int]:
        """Return an output as an event, the end of the first event it was made of, and the row of the last."""
        row = self._rows[output].tolist()
        layout = self._layout(row[OutputColumn.END])
        start, end = row[OutputColumn.STARTED], row[OutputColumn.ENDED]
        assert holder.publish is not None  # noqa: S101 - only holders that publish are passed
        event = published_event(
            holder.publish, self.match(output), selected=layout.selected, start=start, end=end
        )
        return event, row[OutputColumn.BIRTH] if holder.is_inner else end, row[OutputColumn.EVENT]

    def _layout(self, end: int) -> Output:
        known = self._layouts.get(end)
        if known is None:
            output = self._forms[int(self._state.places.rows[end, PlaceColumn.FORM])].output
            assert output is not None  # noqa: S101 - only ends have outputs
            known = self._layouts[end] = output
        return known

    def _value(self, slot: int) -> Value | None:
        return self._codec.decode(int(self._slots[slot, 0]), int(self._slots[slot, 1]))

    def _step(self, part: Part, base: int) -> Step:
        first, last = base + part.first, base + part.last
        begun = self._event(first)
        ended = begun if self._slots[first, 1] == self._slots[last, 1] else self._event(last)
        return Step(part.alias, begun, ended, None if part.chain is None else self._chain(base + part.chain))

    def _event(self, slot: int) -> Event:
        assert self._slots[slot, 0] == Tag.EVENT  # noqa: S101 - every step has an event
        return self._kept(int(self._slots[slot, 1]))

    def _kept(self, number: int) -> Event:
        event = self._events.event(number)
        assert event is not None  # noqa: S101 - events are kept while an output refers to them
        return event

    def _chain(self, slot: int) -> tuple[Event, ...]:
        links = self._state.arena.links
        link = int(self._slots[slot, 1]) if self._slots[slot, 0] == Tag.CHAIN else -1
        found: list[Event] = []
        while link >= 0:
            found.append(self._kept(int(links[link, LinkColumn.EVENT])))
            link = int(links[link, LinkColumn.PREVIOUS])
        return tuple(reversed(found))
