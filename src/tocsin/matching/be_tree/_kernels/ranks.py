"""The rank of a partition: (1 - alpha) gain - alpha loss (BE-Tree, §5)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree.state import Figure, Partition, Setting, State, Total
from tocsin.matching.conjunction_store.state import StoreCounter
from tocsin.matching.encoding.codes import FIELDS
from tocsin.structures.jit import helper

MARGIN: Final = 0.1  # by which ranks must differ to matter; of loss alone, that is about a factor of four
_SCALE: Final = 20.0  # a loss of two to the minus so much counts as none


@helper
def rank(state: State, members: int, loss: float) -> float:
    """Return the rank of a partition with so many members; `loss` is the probability that an event fails one of them.

    Gain and loss are between 0 and 1. Gain grows with the members that the partition takes out of a leaf. Loss is
    logarithmic, because an event pays it for each member.
    """
    alpha = state.settings[Setting.ALPHA]
    gain = members / (members + state.settings[Setting.CAPACITY])
    lost = max(0.0, 1.0 + np.log2(max(loss, 1e-9)) / _SCALE)
    return (1.0 - alpha) * gain - alpha * lost


@helper
def expected_rank(state: State, field: int, members: int) -> float:
    """Return the rank of a partition before it is made, as if all events with its attribute failed.

    Until a window of events is full, an attribute is taken to be as frequent as among the conjunctions.
    """
    if state.totals[Total.WINDOWS] > 0:
        return rank(state, members, state.attributes.share[field // FIELDS])
    return rank(state, members, guess(state, field))


@helper
def guess(state: State, field: int) -> float:
    """Return the share of events with an attribute, if it is as frequent in them as in conjunctions."""
    share = state.attributes.uses[field // FIELDS] / max(state.store.counters[StoreCounter.LIVE], np.int64(1))
    return share * state.totals[Total.SCALE]


@helper
def refresh(state: State, partition: int) -> None:
    """Compute the rank of a partition anew."""
    row = state.partitions[partition]
    members = max(np.int64(row[Partition.MEMBERS]), np.int64(1))
    loss = state.figures[partition, Figure.LOSS]
    if loss >= 0:
        state.figures[partition, Figure.RANK] = rank(state, members, loss)
    else:
        state.figures[partition, Figure.RANK] = expected_rank(state, np.int64(row[Partition.FIELD]), members)
