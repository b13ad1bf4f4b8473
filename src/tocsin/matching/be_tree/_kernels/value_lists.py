"""The lists that `in` and `not in` predicates name; each is stored once."""

from __future__ import annotations

from tocsin.matching.be_tree.state import State, ValueList
from tocsin.structures import blocks
from tocsin.structures.array_types import Int64s
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import kernel


@kernel
def enter_list(
    state: State, code: int, fields: Int64s, keys: Int64s, field: int, bounds: tuple[int, int]
) -> None:
    """Store the sorted members of a list; there must be room."""
    first = blocks.take(state.members, class_of(fields.shape[0]))
    for i in range(fields.shape[0]):
        state.members.rows[first + i, 0], state.members.rows[first + i, 1] = fields[i], keys[i]
    row = state.lists[code]
    row[ValueList.FIRST], row[ValueList.COUNT], row[ValueList.FIELD] = first, fields.shape[0], field
    row[ValueList.LEAST], row[ValueList.GREATEST] = bounds


@kernel
def drop_list(state: State, code: int) -> None:
    """Free a list that no predicate names any more."""
    row = state.lists[code]
    blocks.give(state.members, row[ValueList.FIRST], class_of(row[ValueList.COUNT]))
    row[ValueList.COUNT] = 0
