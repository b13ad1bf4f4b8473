"""One event at a time: encoded into arrays that the next event overwrites, and handed to kernels by address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tocsin.matching._kernels.gathering import DIGITS
from tocsin.matching._kernels.single_event import SingleEvent, SingleEventAddress
from tocsin.matching.batches import IdArray
from tocsin.matching.encoding.codes import Keys
from tocsin.matching.encoding.event_buffer import EventBuffer
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.values import Value
from tocsin.structures.addresses import Addressed

_ROOM: Final = 8_192  # expressions that an event may satisfy before there has to be more room


class SingleEvents:
    """Encodes one event after another; what a kernel finds for one is valid until the next.

    A kernel takes `address`, writes what the event satisfies, and returns how many ids it wrote; see `gather_single`.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._buffer = EventBuffer(vocabulary)
        self._make_room(_ROOM)

    def encode(self, attributes: Mapping[str, Value]) -> int:
        """Encode an event, and return the most pairs that it may have."""
        events = self._buffer.encode(attributes)
        if events is not self._at_hand.events:
            self._turn_to(events)
        return len(events.fields)

    def encode_exactly(self, attributes: Mapping[str, Value]) -> int:
        """Encode an event of which a kernel said NOT_EXACT."""
        events = self._buffer.encode_exactly(attributes)
        if events is not self._at_hand.events:
            self._turn_to(events)
        return len(events.fields)

    def make_room(self, wanted: int = 0) -> None:
        """Make room for more expressions, at least as many as wanted."""
        events = self._at_hand.events
        self._make_room(max(4 * len(self._at_hand.found), wanted))
        if events is not self._at_hand.events:
            self._turn_to(events)

    @property
    def room(self) -> int:
        """Return the number of expressions that there is room for."""
        return len(self._at_hand.found)

    def ids(self, count: int) -> IdArray:
        """Return the first ids that the kernel wrote."""
        return self._at_hand.ids[:count].copy()

    def found(self) -> tuple[Keys, Keys]:
        """Return the expressions that the kernel found, and where they begin and end."""
        found, offsets = self._at_hand.found, self._at_hand.offsets
        return found[: offsets[1]], offsets

    def _make_room(self, count: int) -> None:
        """Replace the room for results by a larger one; plain events and others have their own arrays of pairs."""
        found, ids = np.empty((2, count), dtype=np.int64)
        counts = np.empty(DIGITS, dtype=np.int64)
        room = found, np.zeros(2, dtype=np.int64), ids, counts, self._buffer.raw
        self._at_hand, self._other = (
            SingleEvent(events, *room) for events in (self._buffer.plain, self._buffer.unusual)
        )
        addressed = (Addressed[SingleEvent](SingleEventAddress) for _ in range(2))
        self._addressed, self._other_addressed = addressed
        self.address: Any = self._addressed.address(self._at_hand)

    def _turn_to(self, events: EncodedEvents) -> None:
        """Have the address of these pairs at hand: those of plain events, of others, or longer ones than before."""
        if self._other.events is events:
            self._at_hand, self._other = self._other, self._at_hand
            self._addressed, self._other_addressed = self._other_addressed, self._addressed
        else:
            buffer = self._buffer
            self._other = self._other._replace(
                events=buffer.unusual if events is buffer.plain else buffer.plain
            )
            self._at_hand = self._at_hand._replace(events=events)
        self.address = self._addressed.address(self._at_hand)
