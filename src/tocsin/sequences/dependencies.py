"""Dependencies between streams: what subscriptions read and publish, without cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

from tocsin.model.errors import SubscriptionError


class Dependencies:
    """The streams that subscriptions read, and the streams that they publish to.

    No subscription may read its own results, directly or by way of others: within one epoch that would never end.

    >>> dependencies = Dependencies()
    >>> dependencies.add({"stock"}, "falls")
    >>> dependencies.add({"falls", "news"}, "alarms")
    >>> dependencies.ranks()
    {'news': 0, 'stock': 0, 'falls': 1, 'alarms': 2}
    >>> dependencies.add({"alarms"}, "stock")
    Traceback (most recent call last):
    tocsin.model.errors.SubscriptionError: publishing as `stock` closes a cycle: stock -> falls -> alarms -> stock; ...
    """

    def __init__(self) -> None:
        self._targets: dict[str, Counter[str]] = {}  # stream -> streams that its readers publish to
        self._read: Counter[str] = Counter()
        self._ranks: Mapping[str, int] | None = None
        self._reachable: dict[str, tuple[str, ...]] = {}  # asked for every event, so kept until a change

    def add(self, reads: Iterable[str], publishes: str | None, count: int = 1) -> None:
        """Add subscriptions, or raise `SubscriptionError` naming the cycle that they would close."""
        streams = frozenset(reads)
        if publishes is not None:
            path = self._path(publishes, streams)
            if path is not None:
                raise SubscriptionError(
                    f"publishing as `{publishes}` closes a cycle: {' -> '.join((*path, publishes))}; "
                    "publish under another name"
                )
        self._change(streams, publishes, count)

    def remove(self, reads: Iterable[str], publishes: str | None, count: int = 1) -> None:
        """Remove subscriptions that were added before."""
        self._change(frozenset(reads), publishes, -count)

    def reachable(self, stream: str) -> tuple[str, ...]:
        """Return a stream, and all streams that its events may lead to."""
        if stream not in self._targets:
            return (stream,)
        if stream not in self._reachable:
            self._reachable[stream] = tuple(self._sources(stream))
        return self._reachable[stream]

    def ranks(self) -> Mapping[str, int]:
        """Return a number for each stream that is read or published to, higher than those of its sources.

        If the streams are processed in this order, all events of an epoch are seen.
        """
        if self._ranks is None:
            self._ranks = self._find_ranks()
        return self._ranks

    def _change(self, streams: frozenset[str], publishes: str | None, count: int) -> None:
        """Count `count` more readers of these streams, which publish to `publishes`."""
        for stream in streams:
            _count(self._read, stream, count)
            if publishes is not None:
                targets = self._targets.setdefault(stream, Counter())
                _count(targets, publishes, count)
                if not targets:
                    del self._targets[stream]
        self._ranks = None
        self._reachable.clear()

    def _sources(self, start: str) -> dict[str, str | None]:
        """Return the streams that can be reached, each with the stream before it on the way."""
        found: dict[str, str | None] = {start: None}
        pending = [start]
        while pending:
            stream = pending.pop()
            for target in self._targets.get(stream, ()):
                if target not in found:
                    found[target] = stream
                    pending.append(target)
        return found

    def _path(self, start: str, ends: frozenset[str]) -> list[str] | None:
        """Return the streams on a path from one to any of `ends`, if there is a path."""
        sources = self._sources(start)
        stream: str | None = next((end for end in sources if end in ends), None)
        path: list[str] = []
        while stream is not None:
            path.append(stream)
            stream = sources[stream]
        return path[::-1] or None

    def _find_ranks(self) -> Mapping[str, int]:
        """Return a rank for each stream, above the ranks of all streams that it is published from."""
        sorter = TopologicalSorter[str](dict.fromkeys(self._read, ()))
        for stream, targets in self._targets.items():
            for target in targets:
                sorter.add(target, stream)
        sorter.prepare()
        ranks: dict[str, int] = {}
        rank = 0
        while sorter.is_active():
            ready = sorter.get_ready()
            ranks |= dict.fromkeys(sorted(ready), rank)
            sorter.done(*ready)
            rank += 1
        return ranks


def _count(counter: Counter[str], name: str, change: int) -> None:
    counter[name] += change
    if not counter[name]:
        del counter[name]
