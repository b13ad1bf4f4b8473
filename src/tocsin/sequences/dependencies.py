"""Who reads what others publish: an order in which streams can be worked through, and no way round in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from tocsin.model.errors import SubscriptionError


class Dependencies:
    """The streams that subscriptions read, and those that they publish what they find to.

    What a subscription finds must never come back to it, by whatever way: within one moment that would have no end.

    >>> dependencies = Dependencies()
    >>> dependencies.add({"stock"}, "falls")
    >>> dependencies.add({"falls", "news"}, "alarms")
    >>> dependencies.ranks()
    {'news': 0, 'stock': 0, 'falls': 1, 'alarms': 2}
    >>> dependencies.add({"alarms"}, "stock")
    Traceback (most recent call last):
    tocsin.model.errors.SubscriptionError: what it publishes as `stock` comes back to it: stock -> falls -> alarms -> stock; ...
    """

    def __init__(self) -> None:
        self._ways: dict[str, Counter[str]] = {}  # by stream, how many that read it publish to each other one
        self._read: Counter[str] = Counter()
        self._ranks: Mapping[str, int] | None = None

    def add(self, reads: Iterable[str], publishes: str | None, count: int = 1) -> None:
        """Add subscriptions, or raise `SubscriptionError` naming the cycle that they would close."""
        streams = frozenset(reads)
        if publishes is not None:
            cycle = self._way(publishes, streams)
            if cycle is not None:
                raise SubscriptionError(
                    f"what it publishes as `{publishes}` comes back to it: {' -> '.join((*cycle, publishes))}; "
                    "publish it under another name"
                )
        self._change(streams, publishes, count)

    def remove(self, reads: Iterable[str], publishes: str | None, count: int = 1) -> None:
        """Remove subscriptions that were added before."""
        self._change(frozenset(reads), publishes, -count)

    def reached(self, stream: str) -> Iterator[str]:
        """Return a stream, and all that what comes by it may be published to."""
        found = {stream: None}
        waiting = [stream]
        while waiting:
            at = waiting.pop()
            yield at
            following = [one for one in tuple(self._ways.get(at, ())) if one not in found]
            found |= dict.fromkeys(following)
            waiting += following

    def ranks(self) -> Mapping[str, int]:
        """Return a number for each stream that is read or published to, higher than those of what it is made of.

        Events of one moment are whole if streams are worked through in this order.
        """
        if self._ranks is None:
            self._ranks = self._ranked()
        return self._ranks

    def _change(self, streams: frozenset[str], publishes: str | None, count: int) -> None:
        for stream in streams:
            _count(self._read, stream, count)
            if publishes is not None:
                ways = self._ways.setdefault(stream, Counter())
                _count(ways, publishes, count)
                if not ways:
                    del self._ways[stream]
        self._ranks = None

    def _way(self, start: str, targets: frozenset[str]) -> list[str] | None:
        """Return the streams on the way from one to the first of others that it leads to, if it leads to any."""
        before: dict[str, str | None] = {start: None}
        waiting = [start]
        while waiting:
            stream = waiting.pop()
            if stream in targets:
                way: list[str] = []
                at: str | None = stream
                while at is not None:
                    way.append(at)
                    at = before[at]
                return way[::-1]
            for following in self._ways.get(stream, ()):
                if following not in before:
                    before[following] = stream
                    waiting.append(following)
        return None

    def _ranked(self) -> Mapping[str, int]:
        """Return each stream's rank, which it gets after all that lead to it; there is no cycle."""
        open_ways = Counter(following for ways in self._ways.values() for following in ways)
        streams = dict.fromkeys((*sorted(self._read), *sorted(open_ways)))
        ranks: dict[str, int] = {}
        waiting = [stream for stream in streams if not open_ways[stream]]
        rank = 0
        while waiting:
            ranks |= dict.fromkeys(sorted(waiting), rank)
            following: list[str] = []
            for stream in waiting:
                for other in self._ways.get(stream, ()):
                    open_ways[other] -= 1
                    if not open_ways[other]:
                        following.append(other)
            waiting, rank = following, rank + 1
        return ranks


def _count(counter: Counter[str], name: str, change: int) -> None:
    counter[name] += change
    if not counter[name]:
        del counter[name]
