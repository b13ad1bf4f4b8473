"""Reading outputs: the steps and values of matches, and the events that sequences publish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tocsin.matching import IdArray
from tocsin.model.event import Event
from tocsin.model.values import Value
from tocsin.sequences._kernels.instructions import Tag
from tocsin.sequences.automaton import Output
from tocsin.sequences.matches import SequenceMatch, Step, published_event
from tocsin.sequences.running.events import EventStore
from tocsin.sequences.running.forms import FormTable
from tocsin.sequences.running.holders import Holder
from tocsin.sequences.running.state import LinkColumn, OutputColumn, PlaceColumn, State, StateCounter
from tocsin.sequences.running.values import ValueCodec

_END: Final = int(OutputColumn.END)
_BASE: Final = int(OutputColumn.BASE)
_NO_VALUES: Final[Mapping[str, Value | None]] = {}


class OutputReader:
    """Reads outputs, given by their rows, until the next events are processed.

    Subscriptions may be removed before it is used.
    """

    def __init__(
        self, state: State, forms: FormTable, codec: ValueCodec, events: EventStore, rows: IdArray
    ) -> None:
        self._links = state.arena.links
        self._codec = codec
        self._events = events
        self._rows = rows
        self._slots = state.outputs.slots[: state.counters[StateCounter.OUTPUT_SLOTS]].copy()
        self._layouts: dict[int, Output] = {}
        for end in set(self._rows[:, OutputColumn.END].tolist()):
            output = forms.forms[int(state.places.rows[end, PlaceColumn.FORM])].output
            assert output is not None  # noqa: S101 - only ends have outputs
            self._layouts[end] = output
        self._is_read_ahead = len(rows) < 2 or not events.has_rows

    def match(self, i: int) -> SequenceMatch:
        """Return the steps and values of the i-th output."""
        if not self._is_read_ahead:
            self._read_ahead()
        row = self._rows[i].tolist()
        layout, base = self._layouts[row[_END]], row[_BASE]
        steps: list[Step] = []
        for part in layout.parts:
            first, last = int(self._slots[base + part.first, 1]), int(self._slots[base + part.last, 1])
            begun = self._events[first]
            ended = begun if first == last else self._events[last]
            chain = None if part.chain is None else self._chain(base + part.chain)
            steps.append(Step(part.alias, begun, ended, chain))
        values = _NO_VALUES
        if layout.values:
            values = {name: self._value(base + slot) for name, slot in layout.values}
        return SequenceMatch(tuple(steps), values)

    def _read_ahead(self) -> None:
        """Have the events of all steps read together."""
        self._is_read_ahead = True
        ends, bases = self._rows[:, OutputColumn.END], self._rows[:, OutputColumn.BASE]
        needed = [
            self._slots[bases[ends == end] + slot, 1]
            for end, layout in self._layouts.items()
            for part in layout.parts
            for slot in (part.first, part.last)
        ]
        if needed:
            self._events.read_ahead(np.unique(np.concatenate(needed)))

    def values(self) -> list[Mapping[str, Value | None]]:
        """Return the selected or computed values of each output."""
        rows = self._rows
        found: list[Mapping[str, Value | None]] = [_NO_VALUES] * len(rows)
        for end, layout in self._layouts.items():
            for i in np.flatnonzero(rows[:, OutputColumn.END] == end).tolist() if layout.values else ():
                base = int(rows[i, OutputColumn.BASE])
                found[i] = {name: self._value(base + slot) for name, slot in layout.values}
        return found

    def published_output(self, i: int, holder: Holder) -> tuple[Event, int, int]:
        """Return the i-th output as an event, the end of the first event it was made of, and the row of the last."""
        row = self._rows[i].tolist()
        layout = self._layouts[row[_END]]
        start, end = row[OutputColumn.STARTED], row[OutputColumn.ENDED]
        assert holder.automaton.publish is not None  # noqa: S101 - only holders that publish are passed
        event = published_event(
            holder.automaton.publish, self.match(i), selected=layout.selected, start=start, end=end
        )
        return event, row[OutputColumn.BIRTH] if holder.is_inner else end, row[OutputColumn.EVENT]

    def _value(self, slot: int) -> Value | None:
        return self._codec.decode(int(self._slots[slot, 0]), int(self._slots[slot, 1]))

    def _chain(self, slot: int) -> tuple[Event, ...]:
        link = int(self._slots[slot, 1]) if self._slots[slot, 0] == Tag.CHAIN else -1
        found: list[Event] = []
        while link >= 0:
            found.append(self._events[int(self._links[link, LinkColumn.EVENT])])
            link = int(self._links[link, LinkColumn.PREVIOUS])
        return tuple(reversed(found))
