"""Which lists (`in`, `not in`) a tree's predicates have."""

from __future__ import annotations

import numpy as np

from tocsin.matching.be_tree import state as arrays
from tocsin.matching.be_tree._kernels.value_lists import drop_list, enter_list
from tocsin.matching.be_tree.state import HIGHEST, LOWEST, USES, State
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Keys, Op
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.structures import blocks


def hold_lists(state: State, vocabulary: Vocabulary, tags: Keys, lows: Keys) -> State:
    """Return the state with the members of the lists among these predicates."""
    codes, counts = _lists(tags, lows)
    if not len(codes):
        return state
    state = arrays.with_lists(state, int(codes[-1]) + 1)
    for code in codes[state.lists[codes, USES] == 0].tolist():
        fields, keys = vocabulary.members(code)
        order = np.lexsort((keys, fields))
        fields, keys = fields[order], keys[order]
        state = state._replace(members=blocks.with_room(state.members, len(keys) + len(keys) // 2 + 1))
        is_of_one_kind = len(keys) > 0 and fields[0] == fields[-1]
        kind = int(fields[0]) if is_of_one_kind else int(fields[0]) // FIELDS * FIELDS + Field.ANY
        least, most = (int(keys[0]), int(keys[-1])) if is_of_one_kind else (LOWEST, HIGHEST)
        enter_list(state, code, fields, keys, kind, (least, most))
    state.lists[codes, USES] += counts
    return state


def release_lists(state: State, tags: Keys, lows: Keys) -> None:
    """Take note that so many predicates have their lists no longer."""
    codes, counts = _lists(tags, lows)
    state.lists[codes, USES] -= counts
    for code in codes[state.lists[codes, USES] == 0].tolist():
        drop_list(state, code)


def _lists(tags: Keys, lows: Keys) -> tuple[Keys, Keys]:
    """Return the codes of the lists that predicates have, ascending, and how many have each."""
    ops = tags >> FIELD_BITS
    codes, counts = np.unique(lows[(ops == Op.IN) | (ops == Op.NOT_IN)], return_counts=True)
    return codes, counts.astype(np.int64)
