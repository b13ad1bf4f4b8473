"""Sequence matchers that are saved and restored between any two actions of a script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

import numpy as np

from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.matching.timed_batch import TimedBatch
from tocsin.sequences.compiling.compiler import CompiledSequence
from tocsin.sequences.matches import SequenceMatches
from tocsin.sequences.running.matcher import AutomatonMatcher
from tocsin.structures.archive import Parts


class _Added(NamedTuple):
    numbers: IdArray
    compiled: CompiledSequence
    columns: Mapping[str, Column]


def carried(parts: Parts) -> Parts:
    """Return parts as another process reads them: as JSON, and arrays that cannot be written."""
    members: dict[str, Any] = {}
    for name, member in parts.members.items():
        members[name] = member
        if isinstance(member, np.ndarray):
            members[name] = np.frombuffer(member.tobytes(), dtype=member.dtype).reshape(member.shape)
    return Parts(json.loads(json.dumps(parts.about)), members)


class RestartingMatcher:
    """Runs sequences in a new matcher for every batch of events, to which they are added in another order."""

    def __init__(self, matcher: str | None = "oracle") -> None:
        self._matcher = matcher
        self._random = Random(5)  # noqa: S311 - nothing secret
        self._added: list[_Added] = []
        self.runner = AutomatonMatcher(matcher=matcher)

    def add(self, numbers: IdArray, compiled: CompiledSequence, columns: Mapping[str, Column]) -> None:
        self.runner.add(numbers, compiled, columns)
        self._added.append(_Added(numbers, compiled, columns))

    def remove(self, numbers: IdArray) -> None:
        """Remove them without the matcher's hearing of it: it finds out when it is restored."""
        for place, one in enumerate(self._added):
            kept = ~np.isin(one.numbers, numbers)
            columns = {name: column[kept] for name, column in one.columns.items()}
            self._added[place] = _Added(one.numbers[kept], one.compiled, columns)
        self.restart()

    def process(self, events: TimedBatch) -> SequenceMatches:
        self.restart()
        return self.runner.process(events)

    def restart(self) -> None:
        """Go on in a new matcher."""
        known = np.array(sorted(self.runner._holders._entry_of), dtype=np.int64)
        first_ends, is_known = self.runner.first_ends(known)
        assert is_known.all()
        parts = carried(self.runner.snapshot())
        fresh = AutomatonMatcher(matcher=self._matcher)
        if self._random.random() < 0.3:  # it may have state of its own, too
            fresh = self.runner
            fresh.remove(known)
        self._random.shuffle(self._added)
        for one in self._added:
            fresh.add(*one)
        fresh.restore(fresh.read_snapshot(parts))
        present = np.array([n for one in self._added for n in one.numbers.tolist()], dtype=np.int64)
        fresh.set_first_ends(known[np.isin(known, present)], first_ends[np.isin(known, present)])
        self.runner = fresh
