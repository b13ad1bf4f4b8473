"""Points in clusters: k-means, with every cluster taken."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.views.changes import Floats

_ROUNDS: Final = 50  # Lloyd's; it has mostly settled after ten


def clustered(points: Floats, most: int, random: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return the places of the points in `most` clusters, or as many as there are points; none is empty.

    k-means++ starts it and Lloyd's rounds follow. A cluster that is left empty, as there may be fewer different
    points than clusters, takes the outer half of the largest one.
    """
    count = min(most, len(points))
    centres = _spread_out(points, count, random)
    of_point = _nearest(points, centres)
    for _ in range(_ROUNDS):
        sizes = np.bincount(of_point, minlength=count)
        taken = sizes > 0
        for axis in range(points.shape[1]):
            sums = np.bincount(of_point, weights=points[:, axis], minlength=count)
            centres[taken, axis] = sums[taken] / sizes[taken]
        before, of_point = of_point, _nearest(points, centres)
        if np.array_equal(before, of_point):
            break
    return _all_taken(points, [np.flatnonzero(of_point == cluster) for cluster in range(count)])


def _spread_out(points: Floats, count: int, random: np.random.Generator) -> Floats:
    """Return points to begin with, each drawn with the square of its distance to those before it as its weight."""
    chosen = [int(random.integers(len(points)))]
    squares = np.sum((points - points[chosen[0]]) ** 2, axis=1)
    while len(chosen) < count:
        running = np.cumsum(squares)
        # Where all others are equal to chosen ones any will do; its cluster stays empty, and is filled at the end.
        drawn = np.searchsorted(running, random.random() * running[-1], side="right")
        chosen.append(min(int(drawn), len(points) - 1))
        np.minimum(squares, np.sum((points - points[chosen[-1]]) ** 2, axis=1), out=squares)
    return points[chosen].copy()


def _nearest(points: Floats, centres: Floats) -> NDArray[np.int64]:
    """Return the place of the nearest centre to each point, the first of those equally near."""
    squares = np.sum((points[:, None, :] - centres) ** 2, axis=2)
    return np.asarray(np.argmin(squares, axis=1), dtype=np.int64)


def _all_taken(points: Floats, clusters: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    for i in range(len(clusters)):
        if len(clusters[i]) == 0:
            largest = max(range(len(clusters)), key=lambda cluster: len(clusters[cluster]))
            members = clusters[largest]
            far = np.sum((points[members] - points[members].mean(axis=0)) ** 2, axis=1)
            outward = members[np.argsort(far, kind="stable")]
            half = (len(members) + 1) // 2
            clusters[largest], clusters[i] = np.sort(outward[:half]), np.sort(outward[half:])
    return clusters
