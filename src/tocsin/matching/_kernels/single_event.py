"""A single event as a kernel takes it, with room for what it satisfies: all of it by one address (decision 0045)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL, gather_event
from tocsin.matching._kernels.number_keys import key_of_number
from tocsin.matching.conjunction_store.state import ConjunctionStore
from tocsin.matching.encoding.codes import EXACT
from tocsin.matching.encoding.event_buffer import FLOATS, INTEGERS
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper

NO_ROOM: Final = -1  # what a kernel returns instead of a number of ids: `found` is too short,
NOT_VERIFIED: Final = -2  # or Python has to evaluate residual predicates first,
NOT_EXACT: Final = -3  # or some number has to be encoded by itself,
NO_STATE_ROOM: Final = -4  # or an array of the matcher's state is too short


class SingleEvent(NamedTuple):
    """One event, and room for what it satisfies; the next event is written into the same arrays."""

    events: EncodedEvents  # its arrays may be longer than the event: `offsets` says how much is used
    found: Int64s  # expressions
    offsets: Int64s  # [2] where they begin and end
    ids: Int64s  # as many as `found`
    counts: Int64s  # [DIGITS] for sorting ids
    raw: Int64s  # [2] how many keys, at first, are numbers as they are: see `EventBuffer`


class SingleEventAddress(NamedTuple):
    """The address of a `SingleEvent`: see `tocsin.structures.addresses`."""

    words: Int64s


@helper
def make_keys(single: SingleEvent) -> bool:
    """Make keys of the numbers that were written as they are; return False if some integer may equal no float."""
    keys, raw = single.events.keys, single.raw
    end = raw[INTEGERS]
    for i in range(end):
        if not -EXACT <= keys[i] <= EXACT:
            return False
    for i in range(end):
        keys[i] = key_of_number(np.float64(keys[i]))
    for i in range(end, end + raw[FLOATS]):
        keys[i] = key_of_number(keys[i].view(np.float64) + 0.0)  # -0.0 as 0.0
    raw[INTEGERS] = raw[FLOATS] = 0  # the same event may be given again
    return True


@helper
def gather_single(store: ConjunctionStore, single: SingleEvent) -> int:
    """Write the ids of the expressions that were found; return how many, or NOT_VERIFIED."""
    found, end = single.found, single.offsets[1]
    for i in range(end):
        if found[i] >= NEEDS_RESIDUAL:
            return np.int64(NOT_VERIFIED)
    nothing = np.int64(0)
    return gather_event(store.ids.keys, store.owner, found, nothing, end, single.ids, nothing, single.counts)
