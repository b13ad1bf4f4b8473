"""A network of nodes and links."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.network.state import Adjacency


class Topology:
    """A connected network of nodes 0 to `nodes` - 1 with undirected links: no loops, no parallel links."""

    def __init__(self, nodes: int, ends: NDArray[np.int64]) -> None:
        self.nodes = nodes
        self.ends = ends  # int64[links, 2], the smaller node first, in ascending order

    @classmethod
    def of(cls, nodes: int, here: NDArray[np.int64], there: NDArray[np.int64]) -> Topology:
        """Return a network with links between `here` and `there`; duplicates count once, loops are dropped."""
        keys = np.unique((np.minimum(here, there) * nodes + np.maximum(here, there))[here != there])
        return cls(nodes, np.stack([keys // nodes, keys % nodes], axis=1))

    @cached_property
    def adjacency(self) -> Adjacency:
        """Return the links by node."""
        links = np.arange(len(self.ends))
        here = np.concatenate([self.ends[:, 0], self.ends[:, 1]])
        there = np.concatenate([self.ends[:, 1], self.ends[:, 0]])
        order = np.lexsort((there, here))
        starts = np.zeros(self.nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(here, minlength=self.nodes), out=starts[1:])
        return Adjacency(starts, there[order], np.concatenate([links, links])[order])

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Return how many links each node has."""
        return np.diff(self.adjacency.starts)
