"""The members of lists (`in`, `not in`), kept once however many predicates have the list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.be_tree.state import COUNT, KIND, LEAST, MEMBER, MOST, State
from tocsin.structures import blocks
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import kernel


@kernel
def enter_list(
    state: State,
    code: int,
    fields: NDArray[np.int64],
    keys: NDArray[np.int64],
    kind: int,
    bounds: tuple[int, int],
) -> None:
    """Keep the members of a list, which are in order; there must be room."""
    first = blocks.take(state.members, class_of(fields.shape[0]))
    for i in range(fields.shape[0]):
        state.members.rows[first + i, 0], state.members.rows[first + i, 1] = fields[i], keys[i]
    row = state.lists[code]
    row[MEMBER], row[COUNT], row[KIND] = first, fields.shape[0], kind
    row[LEAST], row[MOST] = bounds


@kernel
def drop_list(state: State, code: int) -> None:
    """Give up a list that no predicate has any more."""
    row = state.lists[code]
    blocks.give(state.members, row[MEMBER], class_of(row[COUNT]))
    row[COUNT] = 0
