"""What a partition is worth: rank = (1 - alpha) gain - alpha loss (BE-Tree, 5)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.be_tree.state import (
    ALPHA,
    DECAYED,
    FIELD,
    LIVE_FORMS,
    LOSS,
    MEMBERS,
    MISSED,
    MISSES,
    MOST_MEMBERS,
    NODE,
    OWN,
    OWNER,
    PARTITION,
    RANK,
    RECYCLED,
    SCALE,
    TOP_FORM,
    TOP_NODE,
    WINDOWS,
    State,
)
from tocsin.matching.encoding.codes import FIELDS
from tocsin.structures.jit import helper, kernel

__all__ = ["MARGIN", "collect", "expected_rank", "judge", "refresh", "to_be_moved"]

MARGIN: Final = 0.1  # by which ranks must differ to matter; of loss alone, that is about a factor of four
_SCALE: Final = 20.0  # a loss of two to the minus so much counts as none
_ENOUGH: Final = 8.0  # times that a member was looked at in vain, in a window: fewer may be chance
_KEPT: Final = 0.5  # of what was known, when a window has been counted


@helper
def _rank(state: State, members: int, loss: float) -> float:
    """Return the rank of a partition with so many members, each of which an event looks at in vain with this chance.

    Gain and loss are between 0 and 1. A partition gains by what it takes out of a leaf, the most by a leaf full. Loss
    is by the order of magnitude, because it is what an event pays for each member.
    """
    alpha = state.settings[ALPHA]
    gain = members / (members + state.settings[MOST_MEMBERS])
    lost = max(0.0, 1.0 + np.log2(max(loss, 1e-9)) / _SCALE)
    return (1.0 - alpha) * gain - alpha * lost


@helper
def expected_rank(state: State, field: int, members: int) -> float:
    """Return the rank of a partition that is not there yet: events that have its attribute are taken to fail.

    Until a window of events was counted, an attribute is taken to be as frequent as among the conjunctions.
    """
    if state.totals[WINDOWS] > 0:
        return _rank(state, members, state.attributes.share[field // FIELDS])
    return _rank(state, members, _guess(state, field))


@helper
def _guess(state: State, field: int) -> float:
    """Return in how many of the events an attribute would be, if they had it as often as conjunctions do."""
    share = state.attributes.uses[field // FIELDS] / max(state.tops[LIVE_FORMS], np.int64(1))
    return share * state.totals[SCALE]


@helper
def refresh(state: State, partition: int) -> None:
    """Let the rank of a partition be what it is worth now."""
    row = state.partitions[partition]
    members = max(np.int64(row[OWN]), np.int64(1))
    loss = state.figures[partition, LOSS]
    if loss >= 0:
        state.figures[partition, RANK] = _rank(state, members, loss)
    else:
        state.figures[partition, RANK] = expected_rank(state, np.int64(row[FIELD]), members)


@kernel
def collect(state: State, start: int, end: int) -> int:
    """Add what was looked at in vain in nodes from `start` to `end` up by partition; return where it stopped."""
    end = min(np.int64(end), state.tops[TOP_NODE])
    for node in range(start, end):
        partition = np.int64(state.about[node, PARTITION])
        if state.about[node, MEMBERS] >= 0 and partition >= 0:
            state.partitions[partition, MISSED] += state.nodes[node, MISSES]
        state.nodes[node, MISSES] = 0
    return end


@kernel
def judge(state: State, start: int, end: int, events: int) -> int:
    """Rank partitions from `start` to `end` by what so many events lost there; mark those whose rank has fallen.

    If it is not known how many there were, all that is counted is forgotten. Returns where it stopped.
    """
    end = min(np.int64(end), state.partition_index.counters[1])
    for partition in range(start, end):
        row = state.partitions[partition]
        if row[OWNER] < 0:
            continue
        figures = state.figures[partition]
        missed, own = np.int64(row[MISSED]), max(np.int64(row[OWN]), np.int64(1))
        # What was guessed before any event had come is measured by how large events turned out to be.
        guessed = _rank(state, own, _guess(state, np.int64(row[FIELD])))
        before = guessed if figures[LOSS] < 0 else figures[RANK]
        row[MISSED] = 0
        row[DECAYED] = 0
        if events == 0:
            continue
        lost = missed / (own * np.float64(events))
        figures[LOSS] = lost if figures[LOSS] < 0 else _KEPT * figures[LOSS] + (1.0 - _KEPT) * lost
        refresh(state, partition)
        if figures[RANK] < before - MARGIN:
            if missed >= _ENOUGH * own:
                row[DECAYED] = 1
                state.totals[RECYCLED] += 1.0
            else:
                figures[RANK] = before
    return end


@kernel
def to_be_moved(state: State, start: int, end: int, numbers: NDArray[np.int64]) -> tuple[int, int]:
    """Write which conjunctions from `start` to `end` are below a partition whose rank has fallen.

    Returns where it stopped, which is before `end` if there is no more room, and how many there are.
    """
    count = np.int64(0)
    end = min(np.int64(end), state.tops[TOP_FORM])
    for number in range(start, end):
        if state.owner[number] < 0:
            continue
        if count == numbers.shape[0]:
            return number, count
        partition = np.int64(state.about[state.forms[number, NODE], PARTITION])
        while partition >= 0 and state.partitions[partition, DECAYED] == 0:
            partition = np.int64(state.about[state.partitions[partition, OWNER], PARTITION])
        if partition >= 0:
            numbers[count] = number
            count += 1
    return end, count
