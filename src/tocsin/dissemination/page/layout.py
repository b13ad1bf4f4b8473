"""Where overlay nodes are drawn: the nearer, the fewer links are between them."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.dissemination.multicast.coordinates import network_coordinates
from tocsin.dissemination.network.overlay import Overlay
from tocsin.views.changes import Floats

_ROUNDS: Final = 120
_PUSH: Final = 0.15  # of what two nodes are too near, in a round


def laid_out(overlay: Overlay, seed: int) -> Floats:
    """Return a place in the unit square for each node, [nodes, 2]; those too near each other are pushed apart."""
    nodes = len(overlay)
    if nodes < 3:
        return np.linspace((0.3, 0.5), (0.7, 0.5), nodes)
    places = network_coordinates(overlay.hops, dimensions=2, seed=seed)
    # Ranks, for the most part: a few nodes far away would crowd all others.
    ranks = np.argsort(np.argsort(places, axis=0, kind="stable"), axis=0, kind="stable") / (nodes - 1)
    spans = np.ptp(places, axis=0)
    places = 0.7 * ranks + 0.3 * (places - places.min(axis=0)) / np.where(spans > 0, spans, 1.0)
    apart = 0.8 / np.sqrt(nodes)
    for _ in range(_ROUNDS):
        between = places[:, None] - places[None]
        distance = np.sqrt((between**2).sum(axis=2))
        np.fill_diagonal(distance, np.inf)
        lacking = np.clip(apart - distance, 0.0, None) / np.maximum(distance, 1e-9)
        places += _PUSH * (between * lacking[:, :, None]).sum(axis=1)
    lowest, spans = places.min(axis=0), np.ptp(places, axis=0)
    scaled: Floats = (places - lowest) / np.where(spans > 0, spans, 1.0)
    return scaled
