"""The lists that `in` and `not in` predicates of a tree name; each is stored once."""

from __future__ import annotations

import numpy as np

from tocsin.matching.be_tree import state as arrays
from tocsin.matching.be_tree._kernels.value_lists import drop_list, enter_list
from tocsin.matching.be_tree.state import HIGHEST, LOWEST, State, ValueList
from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Keys, Op
from tocsin.structures import blocks


def retain_lists(state: State, expressions: Expressions) -> State:
    """Return the state with the lists of expressions, which come with the members of their lists."""
    codes, counts = _lists(expressions)
    if not len(codes):
        return state
    state = arrays.with_lists(state, int(codes[-1]) + 1)
    for place in np.flatnonzero(state.lists[codes, ValueList.USES] == 0).tolist():
        members = slice(*expressions.starts[place : place + 2].tolist())
        fields, keys = expressions.fields[members], expressions.keys[members]
        order = np.lexsort((keys, fields))
        fields, keys = fields[order], keys[order]
        state = state._replace(members=blocks.with_room(state.members, len(keys) + len(keys) // 2 + 1))
        has_one_field = len(keys) > 0 and fields[0] == fields[-1]
        field = int(fields[0]) if has_one_field else int(fields[0]) // FIELDS * FIELDS + Field.ANY
        bounds = (int(keys[0]), int(keys[-1])) if has_one_field else (LOWEST, HIGHEST)
        enter_list(state, int(codes[place]), fields, keys, field, bounds)
    state.lists[codes, ValueList.USES] += counts
    return state


def release_lists(state: State, expressions: Expressions) -> None:
    """Drop the lists that only these expressions named."""
    codes, counts = _lists(expressions)
    state.lists[codes, ValueList.USES] -= counts
    for code in codes[state.lists[codes, ValueList.USES] == 0].tolist():
        drop_list(state, code)


def _lists(expressions: Expressions) -> tuple[Keys, Keys]:
    """Return the codes of expressions' lists, ascending, and the number of predicates that name each."""
    ops = expressions.tags >> FIELD_BITS
    named = expressions.lows[(ops == Op.IN) | (ops == Op.NOT_IN)]
    codes, counts = np.unique(named, return_counts=True)
    return codes, counts.astype(np.int64)
