"""Free lists inside kernels: slots of a state's arrays, linked through a column of the caller's own.

A list is two integers in an array of counters: `heads[free]` is the first free slot, or -1, and `tops[top]` the number of
slots ever in use. `links[slot]` is the next free slot, or -1; a slot that is in use may keep anything there, so `links` is
usually a column that means something else then (`rows[:, NEXT]`). The caller makes room in its arrays beforehand.

`tocsin.structures.slots` says when to use which allocator. Blocks of several sizes are in `tocsin.structures.blocks`.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper


@helper
def take(links: NDArray[Any], heads: Int64s, free: int, top: int) -> int:
    """Return a slot that is not in use; `heads` also keeps the number of slots ever in use, at `top`."""
    return take_run(links, heads, free, heads, top, 1)


@helper
def take_run(links: NDArray[Any], heads: Int64s, free: int, tops: Int64s, top: int, size: int) -> int:
    """Return the first of `size` neighbouring slots that are not in use; a list has runs of one size only."""
    slot = heads[free]
    if slot >= 0:
        heads[free] = links[slot]
    else:
        slot = tops[top]
        tops[top] += size
    return slot


@helper
def give(links: NDArray[Any], heads: Int64s, free: int, slot: int) -> None:
    """Give back a slot, or the run of slots that begins there."""
    links[slot] = heads[free]
    heads[free] = slot
