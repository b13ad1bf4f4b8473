"""Network coordinates (GNP): overlay nodes as points whose distances approximate the hops between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.views.changes import Floats

LANDMARKS: Final = 15
DIMENSIONS: Final = 7

_Problem: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""Residuals [points, residuals] and their derivatives [points, residuals, unknowns] at [points, unknowns]."""

_STARTS: Final = 4  # of the landmarks: one from their eigenvectors, the others random offsets of it
_STEPS: Final = 1_000  # of the landmarks, mostly far fewer
_ROUNDS: Final = 100  # of the others
_STIFFEST: Final = 1e9  # with so much damping, steps are too small to matter
_SETTLED: Final = 1e-9  # a relative improvement that is not worth another round


def network_coordinates(
    hops: NDArray[np.int64], *, landmarks: int = LANDMARKS, dimensions: int = DIMENSIONS, seed: int = 1
) -> Floats:
    """Return a point for each node, given the hops between all of them.

    Landmarks are fitted to the hops among them, every other node to its hops to the landmarks. Both minimise the sum of
    squared relative errors, and reach a local minimum. With few nodes there are fewer landmarks, and no more dimensions
    than these can span.
    """
    chosen = choose_landmarks(hops, landmarks)
    dimensions = max(min(dimensions, len(chosen) - 1), 1)
    among = hops[np.ix_(chosen, chosen)].astype(np.float64)
    anchors = _fit_landmarks(among, dimensions, np.random.default_rng(seed))
    points = _fit(_linear_start(hops[:, chosen], anchors), _to_anchors(anchors, hops[:, chosen]))
    points[chosen] = anchors
    return points


def choose_landmarks(hops: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return up to `most` nodes, chosen greedily to reduce the distance of all nodes to the nearest landmark."""
    nearest = np.full(len(hops), hops.max(initial=0) + 1)
    chosen: list[int] = []
    while len(chosen) < min(most, len(hops)):
        gains = np.sum(np.maximum(nearest - hops, 0), axis=1)
        gains[chosen] = -1  # nodes at one host are no hop apart and must not be chosen twice
        chosen.append(int(np.argmax(gains)))
        np.minimum(nearest, hops[chosen[-1]], out=nearest)
    return np.array(chosen, dtype=np.int64)


def _fit_landmarks(among: Floats, dimensions: int, random: np.random.Generator) -> Floats:
    """Return the points of the landmarks: the best of several fits."""
    start = _from_eigenvectors(among, dimensions)
    beside = random.normal(scale=0.5, size=(_STARTS - 1, *start.shape))
    fitted = _majorise(np.concatenate([start[None], start + beside]), among)
    return np.asarray(fitted[int(np.argmin(_errors_of(fitted, among)))])


def _from_eigenvectors(among: Floats, dimensions: int) -> Floats:
    """Return points by the greatest eigenvectors of the centred squares (classical scaling)."""
    squares = among**2
    centred = -0.5 * (squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean())
    values, vectors = np.linalg.eigh(centred)
    greatest = np.argsort(values)[::-1][:dimensions]
    return np.asarray(vectors[:, greatest] * np.sqrt(np.maximum(values[greatest], 1e-6)))


def _linear_start(apart: NDArray[np.int64], anchors: Floats) -> Floats:
    """Return points by least squares on the differences of squared distances, which are linear in the coordinates."""
    squares = apart.astype(np.float64) ** 2
    wanted = np.sum(anchors**2, axis=1) - squares
    around = anchors - anchors.mean(axis=0)
    return np.asarray(0.5 * (wanted - wanted.mean(axis=1)[:, None]) @ np.linalg.pinv(around).T)


def _majorise(start: Floats, among: Floats) -> Floats:
    """Fit several sets of points by stress majorisation: each step minimises a parabola that bounds the error from above.

    A step is two small matrix products, where Newton's method would solve for all coordinates at once.
    """
    weights = 1.0 / np.maximum(among, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    points, errors = start, _errors_of(start, among)
    for _ in range(_STEPS):
        pulls = -weights * among / np.maximum(_distances(points), 1e-9)
        pulls -= np.eye(len(among)) * pulls.sum(axis=2)[:, :, None]
        points = inverse @ (pulls @ points)
        before, errors = errors, _errors_of(points, among)
        if np.all(before - errors <= _SETTLED * before):
            break
    return points


def _errors_of(points: Floats, among: Floats) -> Floats:
    """Return the sum of squared relative errors of each of several sets of points."""
    relative = (_distances(points) - among) / np.maximum(among, 1.0)
    return np.asarray(np.sum(relative**2, axis=(1, 2)))


def _distances(points: Floats) -> Floats:
    return np.asarray(np.linalg.norm(points[:, :, None] - points[:, None], axis=3))


def _to_anchors(anchors: Floats, apart: NDArray[np.int64]) -> _Problem:
    """Return the least-squares problems of single points, each with its own distances to the anchors."""
    wanted = apart.astype(np.float64)
    scale = np.maximum(wanted, 1.0)  # the error is absolute where the distance is 0

    def problem(at: Floats) -> tuple[Floats, Floats]:
        differences = at[:, None, :] - anchors
        lengths = np.maximum(np.linalg.norm(differences, axis=2), 1e-9)
        return (lengths - wanted) / scale, differences / (lengths * scale)[:, :, None]

    return problem


def _fit(start: Floats, problem: _Problem) -> Floats:
    """Solve a least-squares problem per row of unknowns by Levenberg-Marquardt steps from `start`.

    The problems are independent and solved side by side; each has its own damping.
    """
    at = start.copy()
    damping = np.full(len(at), 1e-2)
    residuals, derivatives = problem(at)
    cost = np.sum(residuals**2, axis=1)
    unit = np.eye(at.shape[1])
    for _ in range(_ROUNDS):
        turned = derivatives.transpose(0, 2, 1)
        normal = turned @ derivatives + damping[:, None, None] * unit
        trial = at - np.linalg.solve(normal, turned @ residuals[..., None])[..., 0]
        trial_residuals, trial_derivatives = problem(trial)
        trial_cost = np.sum(trial_residuals**2, axis=1)
        better = trial_cost < cost
        settled = np.where(better, cost - trial_cost <= _SETTLED * cost, damping >= _STIFFEST)
        at[better], cost[better] = trial[better], trial_cost[better]
        residuals[better], derivatives[better] = trial_residuals[better], trial_derivatives[better]
        damping = np.clip(np.where(better, damping / 3.0, damping * 5.0), 1e-12, _STIFFEST)
        if settled.all():
            break
    return at
