"""The content-addressable network of an overlay."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tocsin.dissemination.can._kernels.routing import route
from tocsin.dissemination.can._kernels.spreading import count_met, locate, spread
from tocsin.dissemination.can.state import Rectangles, RouteRequests, Routes, SpreadTrees, Zones
from tocsin.dissemination.columns import for_kernel
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.structures.growth import roomier
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages


class Can:
    """Zones over (x1, x2), one for each overlay node; a subscription with the range [low, high] is the point (low, high)."""

    def __init__(self, zones: Zones) -> None:
        self.zones = zones

    def __len__(self) -> int:
        return len(self.zones.low1)

    def locate(self, x1: Floats, x2: Floats) -> IdArray:
        """Return the zone that holds each point."""
        _check_finite("point", x1, x2)
        return self._owners(x1, x2)

    def diagonal_positions(self, x: Floats) -> IdArray:
        """Return, for each x, the position in `zones.diagonal` of the zone that holds (x, x)."""
        return np.searchsorted(self.zones.diagonal_from, x, side="right") - 1

    def route(self, sources: IdArray, x1: Floats, x2: Floats) -> Routes:
        """Return greedy routes, from neighbour to neighbour, from zones to the zones that hold points.

        The next zone is the neighbour nearest to the point; of equally near ones, the one that holds it in more
        dimensions, then the one with the smaller number.
        """
        _check_finite("target", x1, x2)
        requests = RouteRequests(
            for_kernel(sources, np.int64), for_kernel(x1, np.float64), for_kernel(x2, np.float64)
        )
        count, done = len(requests.sources), 0
        starts = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(8 * count, dtype=np.int64)
        while True:
            done, is_lost = route(self.zones, requests, done, starts, found)
            if is_lost:
                raise TocsinError(
                    f"route {done}, from zone {requests.sources[done]} to ({x1[done]}, {x2[done]}), comes to a zone that has no "
                    "nearer neighbour: zones or neighbours are missing; take them as `build_can` makes them"
                )
            if done == count:
                return Routes(starts, found[: starts[count]].copy())
            longer = np.empty(roomier(len(found), len(found) + len(self)), dtype=np.int64)
            longer[: starts[done]] = found[: starts[done]]
            found = longer

    def spread(self, messages: Messages) -> SpreadTrees:
        """Return a tree of the zones that meet each message's rectangle, from the owner of its corner.

        A rectangle that contains no range, as outer_l >= inner_l or inner_r >= outer_r, meets none.
        """
        _check_finite("message", messages.inner_l, messages.inner_r)
        ends = (messages.outer_l, messages.inner_l, messages.inner_r, messages.outer_r)
        rectangles = Rectangles(*(for_kernel(end, np.float64) for end in ends))
        starts = np.empty(len(messages) + 1, dtype=np.int64)
        stack, depth = np.empty((2, len(self)), dtype=np.int64)
        count_met(self.zones, rectangles, stack, starts)
        trees = SpreadTrees(starts, *(np.empty(starts[-1], dtype=np.int64) for _ in range(3)))
        spread(self.zones, rectangles, self._right, stack, depth, trees)
        return trees

    @cached_property
    def _right(self) -> IdArray:
        """Return, by zone, the owner of (high1, low2), its lowest neighbour to the right; any zone if there is none."""
        return self._owners(self.zones.high1, self.zones.low2)

    def _owners(self, x1: Floats, x2: Floats) -> IdArray:
        found = np.empty(len(x1), dtype=np.int64)
        locate(self.zones, for_kernel(x1, np.float64), for_kernel(x2, np.float64), found)
        return found


def _check_finite(what: str, x1: Floats, x2: Floats) -> None:
    """Raise a TocsinError if a coordinate is infinite or NaN: no zone holds it."""
    if len(wrong := np.flatnonzero(~(np.isfinite(x1) & np.isfinite(x2)))):
        at = int(wrong[0])
        raise TocsinError(
            f"{what} {at} is ({x1[at]}, {x2[at]}); zones hold finite points only: leave it out, or "
            "limit it to the domain"
        )
