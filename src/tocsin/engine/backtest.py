"""The notifications that subscriptions would have sent over a history, by day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.engine.notifications import Notifications
from tocsin.model import Notification
from tocsin.model.ticks import StreamTicks

EVERY: Final = "__tocsin_every"
"""The id of a subscription to all events, which counts them."""

_DAY: Final = 86_400_000_000  # microseconds
_EPOCH: Final = date(1970, 1, 1)
_FIRST: Final = (date.min - _EPOCH).days
_LAST: Final = (date.max - _EPOCH).days


class Day(Struct, frozen=True):
    """The events of a day, and the notifications that each subscription would have sent."""

    day: date
    events: int
    notifications: Mapping[str, int]

    @property
    def total(self) -> int:
        """Return how many notifications there would have been in all."""
        return sum(self.notifications.values())


class Backtest(Struct, frozen=True):
    """The notifications that subscriptions would have sent, by day; days without events are left out.

    `faults` counts the rows that are no events, or whose time is outside the calendar.
    """

    days: tuple[Day, ...]
    subscriptions: tuple[str, ...]
    faults: int

    @property
    def events(self) -> int:
        """Return how many events there were."""
        return sum(day.events for day in self.days)

    @property
    def total(self) -> int:
        """Return how many notifications there would have been."""
        return sum(day.total for day in self.days)

    @property
    def busiest(self) -> Day | None:
        """Return the day with most notifications."""
        return max(self.days, key=lambda day: day.total, default=None)

    def counts(self) -> dict[str, int]:
        """Return how many notifications each subscription would have sent."""
        return {name: sum(day.notifications.get(name, 0) for day in self.days) for name in self.subscriptions}

    def __str__(self) -> str:
        lines = [f"{'day':<12}{'events':>12}{'notifications':>16}"]
        most = max((day.total for day in self.days), default=0) or 1
        for day in self.days:
            bar = "▇" * (-(-24 * day.total // most))
            lines.append(f"{day.day.isoformat():<12}{day.events:>12,}{day.total:>16,}  {bar}".rstrip())
        per_day = self.total / max(len(self.days), 1)
        left_out = f"; {self.faults:,} rows are no events" if self.faults else ""
        lines.append(
            f"{self.total:,} notifications of {self.events:,} events in {len(self.days):,} "
            f"day{'s' if len(self.days) != 1 else ''}, {per_day:,.1f} a day{left_out}"
        )
        return "\n".join(lines)


class DayCounts:
    """Counts the notifications of an engine by the day on which their events ended.

    The engine has a subscription `EVERY` to all events, which counts these. A day with notifications but without events, as of
    a sequence that a published event completed, is counted too.
    """

    def __init__(self, ticks: StreamTicks) -> None:
        self._ticks = ticks
        self._counts: Counter[tuple[int, str]] = Counter()  # by day since 1970 and subscription

    def add(self, notifications: Notifications) -> None:
        """Count notifications, by the column."""
        if not notifications:
            return
        table = notifications.to_arrow().select(["subscription", "stream", "end"]).combine_chunks()
        names = table["subscription"].combine_chunks().dictionary_encode()
        codes = names.indices.to_numpy(zero_copy_only=False)
        streams = table["stream"].combine_chunks().dictionary_encode()
        stream_codes = streams.indices.to_numpy(zero_copy_only=False)  # NaN where there is no stream
        ends = np.asarray(table["end"].to_numpy(), dtype=np.int64)
        lengths = {None: self._ticks.length(None)}
        lengths |= {name: self._ticks.length(name) for name in streams.dictionary.to_pylist()}
        if len(set(lengths.values())) == 1:
            self._add(_days(ends, lengths[None]), codes, names.dictionary.to_pylist())
            return
        for code, name in [*enumerate(streams.dictionary.to_pylist()), (None, None)]:
            of_stream = np.isnan(stream_codes) if code is None else stream_codes == code
            if of_stream.any():
                days = _days(ends[of_stream], lengths[name])
                self._add(days, codes[of_stream], names.dictionary.to_pylist())

    def add_each(self, notifications: Iterable[Notification]) -> None:
        """Count notifications that come as objects."""
        for one in notifications:
            stream = one.events[-1].stream if one.events else None
            self._counts[(one.end or 0) * self._ticks.length(stream) // _DAY, one.subscription] += 1

    def result(self, subscriptions: Iterable[str], faults: int) -> Backtest:
        """Return the counts by day; events outside the calendar are added to `faults`."""
        days: dict[int, dict[str, int]] = {}
        for (day, name), count in self._counts.items():
            if _FIRST <= day <= _LAST:
                days.setdefault(day, {})[name] = count
            elif name == EVERY:
                faults += count
        return Backtest(
            tuple(
                Day(_EPOCH + timedelta(days=day), days[day].pop(EVERY, 0), days[day]) for day in sorted(days)
            ),
            tuple(subscriptions),
            faults,
        )

    def _add(self, days: NDArray[np.int64], codes: NDArray[np.int64], names: list[str]) -> None:
        first = int(days.min())
        keys = (days - first) * len(names) + codes
        found, counts = np.unique(keys, return_counts=True)
        for key, count in zip(found.tolist(), counts.tolist(), strict=True):
            self._counts[first + key // len(names), names[key % len(names)]] += count


def _days(ends: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Return the days since 1970 of times in ticks of a length in microseconds."""
    if _DAY % length == 0:
        return ends // (_DAY // length)
    return np.array([end * length // _DAY for end in ends.tolist()], dtype=np.int64)
