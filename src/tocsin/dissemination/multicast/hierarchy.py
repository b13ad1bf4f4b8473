"""The multicast hierarchy: a tree of all overlay nodes below the server, built by recursive k-means (2.1.2)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.dissemination.columns import offsets_of
from tocsin.dissemination.multicast.state import NO_PARENT, Hierarchy
from tocsin.views.changes import Floats

_ROUNDS: Final = 50  # Lloyd's; it has mostly settled after ten


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


def cluster_points(points: Floats, most: int, random: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return the positions of the points in `most` clusters, or as many as there are points; none is empty.

    k-means++ chooses the first centres, and Lloyd's rounds follow. A cluster that is left empty, since there may be fewer
    different points than clusters, takes the outer half of the largest one.
    """
    count = min(most, len(points))
    centres = _first_centres(points, count, random)
    of_point = _nearest(points, centres)
    for _ in range(_ROUNDS):
        sizes = np.bincount(of_point, minlength=count)
        is_used = sizes > 0
        for axis in range(points.shape[1]):
            sums = np.bincount(of_point, weights=points[:, axis], minlength=count)
            centres[is_used, axis] = sums[is_used] / sizes[is_used]
        before, of_point = of_point, _nearest(points, centres)
        if np.array_equal(before, of_point):
            break
    return _fill_empty(points, [np.flatnonzero(of_point == cluster) for cluster in range(count)])


def _first_centres(points: Floats, count: int, random: np.random.Generator) -> Floats:
    """Return centres by k-means++: each drawn with its squared distance to the nearest earlier one as its weight."""
    chosen = [int(random.integers(len(points)))]
    squares = np.sum((points - points[chosen[0]]) ** 2, axis=1)
    while len(chosen) < count:
        running = np.cumsum(squares)
        # Where all points equal chosen ones, any will do: its cluster stays empty, and is filled at the end.
        drawn = np.searchsorted(running, random.random() * running[-1], side="right")
        chosen.append(min(int(drawn), len(points) - 1))
        np.minimum(squares, np.sum((points - points[chosen[-1]]) ** 2, axis=1), out=squares)
    return points[chosen].copy()


def _nearest(points: Floats, centres: Floats) -> NDArray[np.int64]:
    """Return the position of the nearest centre to each point, the first of equally near ones."""
    squares = np.sum((points[:, None, :] - centres) ** 2, axis=2)
    return np.asarray(np.argmin(squares, axis=1), dtype=np.int64)


def _fill_empty(points: Floats, clusters: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Give each empty cluster the outer half of the largest one."""
    for i in range(len(clusters)):
        if len(clusters[i]) == 0:
            largest = max(range(len(clusters)), key=lambda cluster: len(clusters[cluster]))
            members = clusters[largest]
            far = np.sum((points[members] - points[members].mean(axis=0)) ** 2, axis=1)
            outward = members[np.argsort(far, kind="stable")]
            half = (len(members) + 1) // 2
            clusters[largest], clusters[i] = np.sort(outward[:half]), np.sort(outward[half:])
    return clusters
