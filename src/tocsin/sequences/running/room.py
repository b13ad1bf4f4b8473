"""Room for what an event makes."""

from __future__ import annotations

from tocsin.sequences.running.state import (
    NEED_AFFECTED,
    NEED_EXPIRED,
    NEED_INSTANCES,
    NEED_KEYS,
    NEED_LINKS,
    NEED_MOVES,
    NEED_OUTPUT_SLOTS,
    NEED_OUTPUTS,
    NEED_SLOTS,
    NEED_TOUCHED,
    State,
)
from tocsin.structures import blocks, hash_index
from tocsin.structures.growth import grown


def given(state: State) -> State:
    """Return the state with room for what its last event needed."""
    needs = state.needs.tolist()
    scratch = grown(state.scratch, ("affected",), needs[NEED_AFFECTED])
    scratch = grown(scratch, ("expired",), needs[NEED_EXPIRED])
    scratch = grown(scratch, ("moves",), needs[NEED_MOVES])
    instances = grown(state.instances, ("rows",), needs[NEED_INSTANCES])
    instances = grown(instances, ("touched",), needs[NEED_TOUCHED])
    instances = instances._replace(keys=hash_index.with_room(instances.keys, needs[NEED_KEYS]))
    outputs = grown(state.outputs, ("rows",), needs[NEED_OUTPUTS])
    outputs = grown(outputs, ("slots",), needs[NEED_OUTPUT_SLOTS])
    arena = grown(state.arena, ("links",), needs[NEED_LINKS])
    arena = arena._replace(slots=blocks.with_room(arena.slots, needs[NEED_SLOTS]))
    return state._replace(scratch=scratch, instances=instances, outputs=outputs, arena=arena)
