"""The schemas by which subscriptions are hashed: few in all, each with few subscriptions to a coordinate.

AMKH hashes a subscription by a subset of its clauses, and an event by one candidate coordinate for each such subset
(*schema*) that some subscription has. Every schema costs each event a row, every subscription that shares a coordinate
with an event costs it a check. Schemas are chosen greedily, each an extension of one before by an attribute, for as
long as one more saves more checks than the row that it costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Schema: TypeAlias = tuple[int, ...]
"""The numbers of attributes, ascending."""

EMPTY: Final[Schema] = ()
_MOST: Final = 256  # schemas: an event has so many coordinates at most


def choose_schemas(counts: Mapping[Schema, int], distinct: Mapping[int, int]) -> dict[Schema, Schema]:
    """Return the schema that conjunctions are hashed by, for each set of attributes with equalities.

    `counts` says how many conjunctions have equalities on just these attributes, and `distinct` how many different values
    each attribute is compared with: an event is assumed to have each of them with equal probability.
    """
    return _Choice(counts, distinct).choose_schemas()


class _Choice:
    def __init__(self, counts: Mapping[Schema, int], distinct: Mapping[int, int]) -> None:
        self._sets = list(counts)
        self._weights = np.array(list(counts.values()), dtype=np.float64)
        self._shares = {place: 1.0 / max(count, 1) for place, count in distinct.items()}
        sizes = np.array([len(one) for one in self._sets], dtype=np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])
        self._places = np.array([place for one in self._sets for place in one], dtype=np.int64)
        self._holders = _holders(self._places, np.repeat(np.arange(len(sizes)), sizes))
        self._costs = np.ones(len(self._sets))  # checks an event, for each conjunction
        self._best = np.zeros(len(self._sets), dtype=np.int64)
        self._schemas: list[Schema] = [EMPTY]
        self._members = [np.arange(len(self._sets))]  # by schema, the sets that contain it
        self._waiting: list[tuple[float, Schema, int, int]] = []

    def choose_schemas(self) -> dict[Schema, Schema]:
        """Return the schema of each set of attributes, chosen greedily by gain."""
        seen = {EMPTY}
        self._extend(0, seen)
        heapify(self._waiting)
        while self._waiting and len(self._schemas) < _MOST:
            _, schema, parent, place = heappop(self._waiting)
            members, cost, gain = self._gain(parent, place)
            if gain <= 1.0:
                continue
            if self._waiting and gain < -self._waiting[0][0]:  # schemas chosen since have reduced it
                heappush(self._waiting, (-gain, schema, parent, place))
                continue
            better = members[self._costs[members] > cost]
            self._costs[better] = cost
            self._best[better] = len(self._schemas)
            self._schemas.append(schema)
            self._members.append(members)
            self._extend(len(self._schemas) - 1, seen)
        return {one: self._schemas[best] for one, best in zip(self._sets, self._best.tolist(), strict=True)}

    def _share(self, schema: Schema) -> float:
        return float(np.prod([self._shares[place] for place in schema]))

    def _gain(self, parent: int, place: int) -> tuple[NDArray[np.int64], float, float]:
        """Return the sets that contain an extended schema, its checks for each, and the checks it saves an event."""
        members = _common(self._members[parent], self._holders[place])
        cost = self._share(self._schemas[parent]) * self._shares[place]
        saved = np.maximum(self._costs[members] - cost, 0.0) * self._weights[members]
        return members, cost, float(saved.sum())

    def _extend(self, number: int, seen: set[Schema]) -> None:
        """Queue the extensions of a schema, each with the checks that it would save now."""
        schema, members = self._schemas[number], self._members[number]
        sizes = self._offsets[members + 1] - self._offsets[members]
        begins = np.repeat(self._offsets[members] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        places = self._places[begins + np.arange(len(begins))]
        owners = np.repeat(members, sizes)
        for place in np.unique(places).tolist():
            longer = tuple(sorted({*schema, place}))
            if longer in seen or len(longer) == len(schema):
                continue
            cost = self._share(schema) * self._shares[place]
            chosen = owners[places == place]
            gain = float((np.maximum(self._costs[chosen] - cost, 0.0) * self._weights[chosen]).sum())
            if gain > 1.0:
                seen.add(longer)
                heappush(self._waiting, (-gain, longer, number, place))


def _common(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the intersection of two ascending arrays, neither empty."""
    few, many = (one, other) if len(one) < len(other) else (other, one)
    places = np.minimum(np.searchsorted(many, few), len(many) - 1)
    found: NDArray[np.int64] = few[many[places] == few]
    return found


def _holders(places: NDArray[np.int64], owners: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Return, by attribute, the sets that contain it, ascending."""
    order = np.argsort(places, kind="stable")
    found, begins = np.unique(places[order], return_index=True)
    parts = np.split(owners[order], begins)[1:]
    return dict(zip(found.tolist(), parts, strict=True))
