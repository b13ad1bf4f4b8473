"""A tree for each inner node and each subset of its children."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.dissemination.multicast.state import UNMADE, Groups, Hierarchy

MOST: Final = 16  # children of a node: it has a row for each of their subsets


def no_groups(tree: Hierarchy) -> Groups:
    """Return room for the trees of all subsets, none of them made yet; no node has more than MOST children."""
    children = np.diff(tree.starts)
    fan_out = int(children.max(initial=0))
    rows = np.where(children > 0, 1 << children, 0)
    first = np.cumsum(rows) - rows
    members, senders = (np.full((int(rows.sum()), max(fan_out, 1)), UNMADE, dtype=np.int8) for _ in range(2))
    return Groups(first, members, senders)
