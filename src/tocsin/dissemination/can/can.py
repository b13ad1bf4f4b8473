"""The content-addressable network of an overlay."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from tocsin.dissemination.can._kernels.lookup import locate
from tocsin.dissemination.can._kernels.routing import route
from tocsin.dissemination.can._kernels.spreading import count_met, spread
from tocsin.dissemination.can.state import Rectangles, RouteRequests, Routes, SpreadTrees, Zones
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.structures.growth import roomier
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages

# Of an array for a kernel: without gaps, and writable; for another one it would be compiled once more.
_NEEDS: Final = ("C", "W")


class Can:
    """Zones over (x1, x2), one for each overlay node; a subscription of the range [low, high] is the point (low, high)."""

    def __init__(self, zones: Zones) -> None:
        self.zones = zones

    def __len__(self) -> int:
        return len(self.zones.low1)

    def locate(self, x1: Floats, x2: Floats) -> IdArray:
        """Return the zone that holds each point."""
        _check_finite("point", x1, x2)
        return self._holders(x1, x2)

    def diagonal_places(self, x: Floats) -> IdArray:
        """Return, for each x, the place in `zones.diagonal` of the zone that holds (x, x)."""
        return np.searchsorted(self.zones.diagonal_from, x, side="right") - 1

    def route(self, sources: IdArray, x1: Floats, x2: Floats) -> Routes:
        """Return the ways from zones to the zones that hold points, greedily from neighbour to neighbour.

        The next is the neighbour whose zone is nearest to the point; of equally near ones, the one that holds it in more
        dimensions, then the one of the smaller number.
        """
        _check_finite("target", x1, x2)
        asked = RouteRequests(np.require(sources, np.int64, _NEEDS), _floats(x1), _floats(x2))
        count, done = len(asked.sources), 0
        starts = np.zeros(count + 1, dtype=np.int64)
        found = np.empty(8 * count, dtype=np.int64)
        while True:
            done, is_lost = route(self.zones, asked, done, starts, found)
            if is_lost:
                raise TocsinError(
                    f"way {done}, from zone {asked.sources[done]} to ({x1[done]}, {x2[done]}), comes to a zone that has no "
                    "nearer neighbour: zones or neighbours are missing; take them as `build_can` makes them"
                )
            if done == count:
                return Routes(starts, found[: starts[count]].copy())
            longer = np.empty(roomier(len(found), len(found) + len(self)), dtype=np.int64)
            longer[: starts[done]] = found[: starts[done]]
            found = longer

    def spread(self, messages: Messages) -> SpreadTrees:
        """Return the zones that meet each message's rectangle, each reached exactly once from the owner of its corner.

        A rectangle that no range can be in, as outer_l >= inner_l or inner_r >= outer_r, meets none.
        """
        _check_finite("message", messages.inner_l, messages.inner_r)
        asked = Rectangles(
            _floats(messages.outer_l),
            _floats(messages.inner_l),
            _floats(messages.inner_r),
            _floats(messages.outer_r),
        )
        starts = np.empty(len(messages) + 1, dtype=np.int64)
        waiting, depth = np.empty(len(self), dtype=np.int64), np.empty(len(self), dtype=np.int64)
        count_met(self.zones, asked, waiting, starts)
        met = SpreadTrees(starts, *(np.empty(starts[-1], dtype=np.int64) for _ in range(3)))
        spread(self.zones, asked, self._right, waiting, depth, met)
        return met

    @cached_property
    def _right(self) -> IdArray:
        """Return, by zone, the one that holds (high1, low2), its lowest neighbour to the right; any, if there is none."""
        return self._holders(self.zones.high1, self.zones.low2)

    def _holders(self, x1: Floats, x2: Floats) -> IdArray:
        found = np.empty(len(x1), dtype=np.int64)
        locate(self.zones, _floats(x1), _floats(x2), found)
        return found


def _floats(array: Floats) -> Floats:
    """Return an array as the kernels are compiled for."""
    return np.require(array, np.float64, _NEEDS)


def _check_finite(what: str, x1: Floats, x2: Floats) -> None:
    """Raise a TocsinError if a coordinate is infinite or NaN: no zone holds it."""
    if len(wrong := np.flatnonzero(~(np.isfinite(x1) & np.isfinite(x2)))):
        place = int(wrong[0])
        raise TocsinError(
            f"{what} {place} is ({x1[place]}, {x2[place]}); zones hold finite points only: leave it out, or "
            "limit it to the domain"
        )
