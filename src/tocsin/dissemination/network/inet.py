"""Generated networks in the shape of the internet, after Inet: few nodes with very many links, many with one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tocsin.dissemination.network.topology import Topology
from tocsin.model.errors import TocsinError

_LARGEST: Final = 0.6  # the largest degree is about the number of nodes to this power


def make_topology(
    nodes: int = 20_000, *, seed: int = 1, exponent: float = 2.2, leaves: float = 0.3
) -> Topology:
    """Return a connected network: a share of `leaves` with one link, the other degrees from a power law.

    Three steps as in Inet-3.0: a tree of the inner nodes, then the leaves, both attached in proportion to the links that a
    node still lacks, then further links from the node of the highest degree down. The same arguments give the same network.
    """
    _check(nodes, exponent, leaves)
    random = np.random.default_rng([seed, nodes])
    degrees, is_leaf = _degrees(random, nodes, exponent, leaves)
    draws = _draws(random)
    # Degrees are drawn independently of each other, so the order of the numbers is a random one.
    inner, outer = np.flatnonzero(~is_leaf).tolist(), np.flatnonzero(is_leaf).tolist()
    wanted: list[int] = degrees.tolist()
    links, stubs = _tree(inner, outer, wanted, draws)
    links += _fill(inner, wanted, links, stubs, draws)
    ends = np.array(links, dtype=np.int64)
    return Topology.of(nodes, ends[:, 0], ends[:, 1])


def _check(nodes: int, exponent: float, leaves: float) -> None:
    if nodes < 2:
        raise TocsinError(f"a network of {nodes} nodes has no link; make one of at least 2")
    if not 1 < exponent < np.inf:
        raise TocsinError(f"exponent {exponent}: a power law of degrees falls; give one above 1, such as 2.2")
    if not 0 <= leaves < 1:
        raise TocsinError(f"leaves {leaves}: the share of nodes with one link is at least 0 and below 1")


def _degrees(
    random: Generator, nodes: int, exponent: float, leaves: float
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the degree of each node, and which nodes are leaves."""
    outer = min(round(leaves * nodes), nodes - 1)
    is_leaf = np.zeros(nodes, dtype=np.bool_)
    is_leaf[random.permutation(nodes)[:outer]] = True
    inner = nodes - outer
    choices = np.arange(2, max(2, int(nodes**_LARGEST)) + 1)
    share = np.cumsum(choices ** -float(exponent))
    degrees = np.ones(nodes, dtype=np.int64)
    drawn = choices[np.searchsorted(share, random.random(inner) * share[-1], side="right")]
    # A tree of the inner nodes takes two ends per link, each leaf one more; a small network may draw too few.
    missing = max(0, 2 * (inner - 1) + outer - int(drawn.sum()))
    degrees[~is_leaf] = drawn + np.bincount(random.integers(inner, size=missing), minlength=inner)
    return degrees, is_leaf


def _draws(random: Generator) -> Iterator[float]:
    """Yield random numbers in [0, 1) without end."""
    while True:
        yield from random.random(4_096).tolist()


def _tree(
    inner: list[int], outer: list[int], wanted: list[int], draws: Iterator[float]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return a random tree of all nodes, and the stubs that are left: each node as often as it still lacks a link."""
    stubs = [inner[0]] * wanted[inner[0]]
    links = []
    for node in (*inner[1:], *outer):
        position = int(next(draws) * len(stubs))
        links.append((node, stubs[position]))
        stubs[position] = stubs[-1]
        stubs.pop()
        stubs += [node] * (wanted[node] - 1)
    return links, stubs


def _fill(
    inner: list[int],
    wanted: list[int],
    links: list[tuple[int, int]],
    stubs: list[int],
    draws: Iterator[float],
) -> list[tuple[int, int]]:
    """Return links between stubs, without duplicates; stubs that find no partner are dropped."""
    linked: list[set[int]] = [set() for _ in wanted]
    for node, other in links:
        linked[node].add(other)
        linked[other].add(node)
    lacking = np.bincount(np.array(stubs, dtype=np.int64), minlength=len(wanted)).tolist()
    more = []
    for node in sorted(inner, key=lambda one: (-wanted[one], one)):
        lacks, lacking[node] = lacking[node], 0  # its own stubs are stale from here on
        refused = []
        while lacks and stubs:
            position = int(next(draws) * len(stubs))
            other = stubs[position]
            stubs[position] = stubs[-1]
            stubs.pop()
            if not lacking[other]:
                continue
            if other in linked[node]:
                refused.append(other)
                continue
            more.append((node, other))
            linked[node].add(other)
            linked[other].add(node)
            lacking[other] -= 1
            lacks -= 1
        stubs += refused
    return more
