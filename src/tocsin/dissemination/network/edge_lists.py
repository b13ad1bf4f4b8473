"""Networks read from files, a link a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from tocsin.dissemination.network.topology import Topology
from tocsin.formats.files import UNREADABLE, as_text, is_readable, open_decompressed
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError

_SHOWN: Final = 5  # sizes of components in an error
_WIDEST: Final = 60  # characters of a line or a name in an error


def read_edges(path: str | Path) -> Topology:
    """Return the network of a text file, `.gz` or `.zst` perhaps, whose lines are links: the names of two nodes.

    Names are separated by commas, or by blanks where a line has no comma; further fields, empty lines and comments
    after `#` are ignored. Nodes are numbered in the order in which they appear. A link may be there twice, in either
    direction; links from a node to itself are left out. Raise `TocsinError` for a line that is no link, and for a
    network that is not connected.
    """
    path = Path(path)
    if not is_readable(path):
        raise TocsinError(f"there is no file {path}; name a text file with a link a line")
    numbers: dict[str, int] = {}
    ends: list[int] = []
    for here, there in _links(path):
        ends.append(numbers.setdefault(here, len(numbers)))
        ends.append(numbers.setdefault(there, len(numbers)))
    if not ends:
        raise TocsinError(f"{path} has no link between two nodes; write two names a line, such as `a b`")
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    topology = Topology.of(len(numbers), pairs[:, 0], pairs[:, 1])
    component = _component_labels(topology)
    if component.any():
        raise _disconnected(path, component, list(numbers))
    return topology


def _links(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names at both ends of each link, without loops."""
    line = 0
    try:
        with path.open("rb") as raw, as_text(open_decompressed(raw, path.suffix)) as text:
            for line, read in enumerate(text, 1):
                written = read.partition("#")[0].strip()
                if not written:
                    continue
                names = [name.strip() for name in written.split(",")] if "," in written else written.split()
                if len(names) < 2 or not names[0] or not names[1]:
                    raise TocsinError(
                        f"{path}, line {line}: {_quoted(written)} is no link; write the names of two nodes, such as `a b` or `a,b`"
                    )
                if names[0] != names[1]:
                    yield names[0], names[1]
    except UNREADABLE as fault:
        raise TocsinError(f"{path} cannot be read further than line {line}: {fault}") from None


def _component_labels(topology: Topology) -> IdArray:
    """Return, for each node, the smallest node number of its component: all 0 if the network is connected."""
    least = np.arange(topology.nodes)
    while True:
        here, there = least[topology.ends[:, 0]], least[topology.ends[:, 1]]
        if np.array_equal(here, there):
            return least
        # Hook the least node of each component to a smaller neighbouring one, then compress paths.
        np.minimum.at(least, np.maximum(here, there), np.minimum(here, there))
        while not np.array_equal(further := least[least], least):
            least = further


def _disconnected(path: Path, component: IdArray, names: list[str]) -> TocsinError:
    """Return the error of a network with several components, the largest first."""
    first, sizes = np.unique(component, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    listed = ", ".join(str(size) for size in sizes[order[:_SHOWN]].tolist())
    others = f" and {len(sizes) - _SHOWN} others, none larger," if len(sizes) > _SHOWN else ""
    return TocsinError(
        f"{path}: the network is in {len(sizes)} parts, of {listed}{others} nodes; "
        f"keep the links of the largest one alone, in which {_quoted(names[first[order[0]]])} is"
    )


def _quoted(text: str) -> str:
    """Return the beginning of a text, escaped: a binary file may be one long line."""
    return f"`{repr(text[:_WIDEST])[1:-1]}{'…' if len(text) > _WIDEST else ''}`"
