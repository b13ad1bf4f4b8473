"""Checks of memory that is handed out in blocks (`tocsin.structures.blocks`)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

SIZES = [1, 2, 3, 4, *(size for log in range(2, 40) for size in (6 << (log - 2), 8 << (log - 2)))]
"""The size of a block by its class."""

Blocks = list[tuple[int, int]]
"""The first row and the size of each block."""


def chain(links: NDArray[Any], first: int) -> list[int]:
    """Return the numbers that `links` lead to, from `first` on."""
    found = []
    while first >= 0:
        found.append(first)
        first = int(links[first])
    return found


def check_disjoint(used: Blocks, free: NDArray[Any], links: NDArray[Any], top: int) -> None:
    """Check that blocks in use and free ones fill the memory, and that none overlaps another."""
    blocks = list(used)
    for class_, head in enumerate(free.tolist()):
        blocks += [(at, SIZES[class_]) for at in chain(links, head)]
    end = 0
    for first, size in sorted(blocks):
        assert first == end
        end += size
    assert end == top
