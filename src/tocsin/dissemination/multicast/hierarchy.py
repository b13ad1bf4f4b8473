"""The multicast hierarchy: a tree of all overlay nodes below the server, built by recursive k-means (2.1.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.columns import offsets_of
from tocsin.dissemination.multicast.clusters import cluster_points
from tocsin.dissemination.multicast.state import NO_PARENT, Hierarchy
from tocsin.views.changes import Floats


def build_hierarchy(points: Floats, root: int, *, fan_out: int, seed: int = 1) -> Hierarchy:
    """Return a tree that spans the nodes of all points from `root`, with at most `fan_out` children each.

    The nodes below another are its children if they are few enough. Otherwise k-means makes `fan_out` clusters of them;
    the node nearest to a cluster's centre is the child, and the rest of the cluster is below it.
    """
    random = np.random.default_rng(seed)
    parents = np.full(len(points), NO_PARENT, dtype=np.int64)
    depths = np.zeros(len(points), dtype=np.int64)
    waiting = [(root, np.delete(np.arange(len(points), dtype=np.int64), root))]
    while waiting:
        above, members = waiting.pop()
        if len(members) <= fan_out:
            clusters = [members[i : i + 1] for i in range(len(members))]
        else:
            clusters = [members[positions] for positions in cluster_points(points[members], fan_out, random)]
        for cluster in clusters:
            leading = _nearest_to_centre(points[cluster])
            leader = int(cluster[leading])
            parents[leader], depths[leader] = above, depths[above] + 1
            if len(cluster) > 1:
                waiting.append((leader, np.delete(cluster, leading)))
    return _by_parent(root, parents, depths)


def _nearest_to_centre(points: Floats) -> int:
    """Return the position of the point nearest to the centre of all."""
    return int(np.argmin(np.sum((points - points.mean(axis=0)) ** 2, axis=1)))


def _by_parent(root: int, parents: NDArray[np.int64], depths: NDArray[np.int64]) -> Hierarchy:
    order = np.argsort(parents, kind="stable")
    children = order[1:]  # the root has no parent, and comes first
    starts = offsets_of(parents[children], len(parents))
    ranks = np.zeros(len(parents), dtype=np.int64)
    ranks[children] = np.arange(len(children)) - starts[parents[children]]
    return Hierarchy(root, parents, depths, ranks, starts, children)
