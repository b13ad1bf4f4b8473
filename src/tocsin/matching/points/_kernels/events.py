"""A single event: its rectangles, the points in them, and their ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin.matching._kernels.number_keys import number_of_key
from tocsin.matching._kernels.single_event import (
    NO_ROOM,
    NOT_EXACT,
    SingleEvent,
    SingleEventAddress,
    gather_single,
    make_keys,
)
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.points._kernels.rectangles import rectangles_of
from tocsin.matching.points.state import State, Total, Values
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel
from tocsin.structures.point_index._kernels.queries import find_in
from tocsin.structures.point_index.state import Rectangles
from tocsin.structures.point_index.state import State as PointState


class PointsState(NamedTuple):
    """The matcher's state and its points, with room for the rectangles of a single event."""

    state: State
    points: PointState
    values: Values  # [pairs]
    pairs: Int64s  # [fields] -1
    asked: Rectangles  # [MOST_SHAPES]
    which: Int64s  # [MOST_SHAPES]
    stack: Int64s  # [DEPTH]


class PointsStateAddress(NamedTuple):
    """The address of a `PointsState`: see `tocsin.structures.addresses`."""

    words: Int64s


@kernel
def match_event(address: PointsStateAddress, event: SingleEventAddress, others: Int64s) -> int:
    """Find the points that a single event satisfies, and write their ids and those of `others`: see `gather_single`.

    `others` are conjunctions that the inner matcher has found.
    """
    all_: PointsState = load(address)
    single: SingleEvent = load(event)
    if not make_keys(single):
        return np.int64(NOT_EXACT)
    found = single.found
    _write_values(single.events, all_.values)
    _, rectangles = rectangles_of(
        all_.state, single.events, all_.values, np.int64(0), all_.asked, all_.which, all_.pairs
    )
    end = np.int64(0)
    for q in range(rectangles):
        end = find_in(all_.points, all_.asked, q, all_.stack, end, found)
        if end < 0:
            return np.int64(NO_ROOM)
    if end + others.shape[0] > found.shape[0]:
        return np.int64(NO_ROOM)
    for i in range(others.shape[0]):
        found[end + i] = others[i]
    single.offsets[1] = end + others.shape[0]
    all_.state.totals[Total.EVENTS] += 1
    all_.state.totals[Total.RECTANGLES] += rectangles
    return gather_single(all_.state.store, single)


@helper
def _write_values(events: EncodedEvents, values: Values) -> None:
    """Write the numbers of an event's pairs; pairs that are no numbers get arbitrary ones."""
    for pair in range(events.offsets[1]):
        at = number_of_key(events.lows[pair])
        values.at[pair] = at
        values.below[pair] = np.nextafter(at, -np.inf)
        values.above[pair] = np.nextafter(at, np.inf)
