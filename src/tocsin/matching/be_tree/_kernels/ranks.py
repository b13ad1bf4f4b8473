"""What a partition is worth: rank = (1 - alpha) gain - alpha loss (BE-Tree, 5)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree.state import (
    ALPHA,
    FIELD,
    LIVE_FORMS,
    LOSS,
    MOST_MEMBERS,
    OWN,
    RANK,
    SCALE,
    WINDOWS,
    State,
)
from tocsin.matching.encoding.codes import FIELDS
from tocsin.structures.jit import helper

MARGIN: Final = 0.1  # by which ranks must differ to matter; of loss alone, that is about a factor of four
_SCALE: Final = 20.0  # a loss of two to the minus so much counts as none


@helper
def rank(state: State, members: int, loss: float) -> float:
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
        return rank(state, members, state.attributes.share[field // FIELDS])
    return rank(state, members, guess(state, field))


@helper
def guess(state: State, field: int) -> float:
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
        state.figures[partition, RANK] = rank(state, members, loss)
    else:
        state.figures[partition, RANK] = expected_rank(state, np.int64(row[FIELD]), members)
