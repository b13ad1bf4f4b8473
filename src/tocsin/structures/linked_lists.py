"""Doubly linked lists inside kernels: items of a state's arrays, linked through two columns of the caller's own.

`heads[list_]` is the first item of a list, or -1; `nexts[item]` and `previous[item]` are its neighbours, or -1. Both calls
take constant time.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tocsin.structures.jit import helper


@helper
def push(nexts: NDArray[Any], previous: NDArray[Any], heads: NDArray[Any], list_: int, item: int) -> None:
    """Put an item at the beginning of a list."""
    head = heads[list_]
    nexts[item], previous[item] = head, -1
    if head >= 0:
        previous[head] = item
    heads[list_] = item


@helper
def unlink(nexts: NDArray[Any], previous: NDArray[Any], heads: NDArray[Any], list_: int, item: int) -> None:
    """Remove an item, which must be there, from its list."""
    following, before = nexts[item], previous[item]
    if following >= 0:
        previous[following] = before
    if before >= 0:
        nexts[before] = following
    else:
        heads[list_] = following
