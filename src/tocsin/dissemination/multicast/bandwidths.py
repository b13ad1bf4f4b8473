"""What links and nodes can carry."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.dissemination.multicast._kernels.narrowing import narrow
from tocsin.dissemination.multicast.state import Rates
from tocsin.dissemination.network.overlay import Overlay
from tocsin.dissemination.network.paths import new_search
from tocsin.views.changes import Floats

_LEAST: Final = 1
_MOST: Final = 10


def random_rates(overlay: Overlay, *, seed: int) -> Rates:
    """Return the rates of a network whose links have random bandwidths, whole numbers from 1 to 10."""
    drawn = np.random.default_rng(seed).integers(
        _LEAST, _MOST, size=len(overlay.topology.ends), endpoint=True
    )
    return rates_of(overlay, drawn.astype(np.float64))


def rates_of(overlay: Overlay, widths: Floats) -> Rates:
    """Return the rates between overlay nodes, given the bandwidth of each link; a node's access is all of its links."""
    topology, nodes = overlay.topology, len(overlay)
    bottlenecks = np.empty((nodes, nodes), dtype=np.float64)
    passing = np.empty(topology.nodes, dtype=np.float64)
    narrow(topology.adjacency, overlay.hosts, new_search(topology), widths, passing, bottlenecks)
    access = np.zeros(topology.nodes, dtype=np.float64)
    np.add.at(access, topology.ends, widths[:, None])
    return Rates(bottlenecks, access[overlay.hosts], overlay.hops)
