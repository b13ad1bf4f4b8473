"""Snapshots of a whole matcher: its instances, and how far it has come."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from tocsin.model.errors import SavedError
from tocsin.model.options import ALWAYS
from tocsin.sequences.modes import Optimisations
from tocsin.sequences.running.events import EventStore
from tocsin.sequences.running.garbage_collection import GarbageCollector
from tocsin.sequences.running.graph import GraphWriter
from tocsin.sequences.running.instance_index import InstanceIndexTuner
from tocsin.sequences.running.restoring import find_places, put_instances, without_instances
from tocsin.sequences.running.snapshots import SavedInstances, read_instances, write_instances
from tocsin.sequences.running.state import Death, PlaceColumn, StateCounter
from tocsin.sequences.running.values import ValueCodec
from tocsin.structures import hash_index
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Int64s
from tocsin.structures.compact_parts import PartsReader, PartsWriter

_COUNTED: Final = ("VISITED", "MATCHED", "EXAMINED", "MADE")


class Progress(Struct, frozen=True):
    """How many events a matcher has processed, and how many matches it has found."""

    events: int = 0
    matches: int = 0


class SavedMatcher(Struct, frozen=True):
    """A snapshot of a matcher, read and checked; without instances it is that of a new matcher."""

    instances: SavedInstances | None = None
    epoch: int = ALWAYS
    progress: Progress = Progress()
    counters: dict[str, int] = {}
    deaths: tuple[int, ...] = (0,) * len(Death)


class MatcherSaver:
    """Writes and restores the snapshots of a matcher."""

    def __init__(
        self,
        *,
        mode: Optimisations,
        graph: GraphWriter,
        codec: ValueCodec,
        events: EventStore,
        collector: GarbageCollector,
        tuner: InstanceIndexTuner,
    ) -> None:
        self._mode = mode
        self._graph = graph
        self._codec = codec
        self._events = events
        self._collector = collector
        self._tuner = tuner

    def snapshot(self, progress: Progress) -> Parts:
        """Return all instances, and how far the matcher has come."""
        if not self._mode.merging:
            raise SavedError("a matcher that does not merge automata cannot be saved")
        graph, writer = self._graph, PartsWriter()
        counters = graph.state.counters
        writer.about |= {
            "mode": msgspec.to_builtins(self._mode),
            "epoch": int(counters[StateCounter.EPOCH]),
            "progress": msgspec.to_builtins(progress),
            "counters": {name: int(counters[StateCounter[name]]) for name in _COUNTED},
            "deaths": self.deaths().tolist(),
        }
        write_instances(graph.state, self._codec, self._events, graph.streams, writer)
        return writer.parts()

    def read(self, parts: Parts) -> SavedMatcher:
        """Return a snapshot, checked, or raise `SavedError`; nothing changes."""
        try:
            about = parts.about
            mode = msgspec.convert(about["mode"], Optimisations)
            instances = read_instances(PartsReader(parts))
            saved = SavedMatcher(
                instances,
                int(about["epoch"]),
                msgspec.convert(about["progress"], Progress),
                {name: int(about["counters"][name]) for name in _COUNTED},
                tuple(map(int, about["deaths"])),
            )
            if len(saved.deaths) != len(Death):
                raise ValueError("its counts are others")
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as fault:
            raise _damaged(fault) from fault
        if mode != self._mode or not mode.merging:
            raise SavedError("these partial matches are of a matcher with other optimisations")
        return saved

    def restore(self, saved: SavedMatcher) -> int:
        """Replace all instances by those of a snapshot; return how many were dropped because their place is gone."""
        graph, instances = self._graph, saved.instances
        try:
            found = None if instances is None else find_places(graph.state, graph.streams, instances)
        except ValueError as fault:
            raise _damaged(fault) from fault
        graph.state = state = without_instances(graph.state)
        graph.deaths[:] = saved.deaths
        state.counters[StateCounter.EPOCH] = saved.epoch
        for name in _COUNTED:
            state.counters[StateCounter[name]] = saved.counters.get(name, 0)
        dropped = 0
        if instances is None or found is None:
            self._events.restore([])
        else:
            graph.state = put_instances(state, instances, found, self._codec, self._events)
            dropped = len(instances.starts) - int(graph.state.counters[StateCounter.LIVE])
        self._collector.restart(graph.state)
        self._tuner.restart(int(graph.state.counters[StateCounter.MADE]))
        return dropped

    def deaths(self) -> Int64s:
        """Return how many instances have died, by `Death`."""
        graph = self._graph
        top = hash_index.top_entry(graph.state.graph.entries)
        live = np.flatnonzero(graph.state.places.rows[:top, PlaceColumn.USES] > 0)
        return np.asarray(graph.deaths + graph.state.places.deaths[live].sum(axis=0))


def _damaged(fault: Any) -> SavedError:
    return SavedError(f"the partial matches are damaged: {fault}")
