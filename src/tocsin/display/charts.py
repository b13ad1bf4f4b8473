"""A small chart of how often something happened over time, in SVG."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.display.html import escaped
from tocsin.display.text import counted

_HOUR: Final = 3_600_000_000  # microseconds
_DAY: Final = 24 * _HOUR
_MOST: Final = 90  # bars
_WIDTH: Final = 560
_HEIGHT: Final = 120
_LEFT: Final = 44
_TOP: Final = 10
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_000_000  # microseconds that datetimes reach


class Bars(NamedTuple):
    """Counts per interval: where each begins, how often it happened, and what an interval is."""

    labels: list[str]
    counts: list[int]
    unit: str


def bars_over_time(times: NDArray[np.int64], tick: int | None) -> Bars:
    """Return how often something happened by day, given the ticks at which it did; days without it are bars, too.

    `tick` is how many microseconds a tick is, None if ticks stand for no time of day. Less than two days are counted by the hour, and
    more than 90 by several days a bar.
    """
    if tick is None or not len(times):
        return _bars(times, 1, "tick")
    first, last = int(times.min()) * tick, int(times.max()) * tick
    if first < _EARLIEST or last > _LATEST:
        return _bars(times, 1, "tick")
    unit, name = (_HOUR, "hour") if last - first < 2 * _DAY else (_DAY, "day")
    return _bars(times * tick // unit, unit, name)


def _bars(places: NDArray[np.int64], unit: int, name: str) -> Bars:
    """Return the counts per place, of which several are one bar if there are many."""
    if not len(places):
        return Bars([], [], f"by {name}")
    first, last = int(places.min()), int(places.max())
    width = max(1, ceil((last - first + 1) / _MOST))
    # Unsigned, since the difference of two times may need all of 64 bits.
    after = places.astype(np.uint64) - np.uint64(first % 2**64)
    bars = (after // np.uint64(width)).astype(np.int64)
    counts = np.bincount(bars, minlength=(last - first) // width + 1).tolist()
    labels = [_label(first + i * width, unit, name) for i in range(len(counts))]
    return Bars(labels, counts, f"by {name}" if width == 1 else f"by {counted(width, name)}")


def _label(place: int, unit: int, name: str) -> str:
    if name == "tick":
        return f"{place:,}"
    moment = _EPOCH + timedelta(microseconds=place * unit)
    return moment.strftime("%Y-%m-%d %H:00" if name == "hour" else "%Y-%m-%d")


def bar_chart(bars: Bars, noun: str) -> str:
    """Return a chart in SVG whose colours are those of the box around it; pointing at a bar shows its count."""
    if not bars.counts:
        return ""
    highest, room = max(bars.counts), _WIDTH - _LEFT
    step = min(room / len(bars.counts), 40)
    bottom = _TOP + _HEIGHT
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {bottom + 22}" width="{_WIDTH}" height="{bottom + 22}" role="img">',
        f"<title>{escaped(bars.unit)}</title>",
        f'<line class="grid" x1="{_LEFT}" y1="{_TOP}" x2="{_WIDTH}" y2="{_TOP}"/>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end">{highest:,}</text>',
        f'<text x="{_LEFT - 6}" y="{bottom + 4}" text-anchor="end">0</text>',
    ]
    for i, (label, count) in enumerate(zip(bars.labels, bars.counts, strict=True)):
        height = max(_HEIGHT * count / highest, 1.5) if count else 0
        parts.append(
            f'<g><title>{escaped(label)}: {counted(count, noun)}</title><rect class="bar" x="{_LEFT + i * step:.1f}" '
            f'y="{bottom - height:.1f}" width="{max(step - 1, 0.8):.1f}" height="{height:.1f}"/></g>'
        )
    parts.append(f'<line class="axis" x1="{_LEFT}" y1="{bottom}" x2="{_WIDTH}" y2="{bottom}"/>')
    parts.append(f'<text x="{_LEFT}" y="{bottom + 16}">{escaped(bars.labels[0])}</text>')
    if len(bars.labels) > 1:
        end = max(_LEFT + len(bars.labels) * step, _LEFT + 190)
        parts.append(
            f'<text x="{end:.0f}" y="{bottom + 16}" text-anchor="end">{escaped(bars.labels[-1])}</text>'
        )
    return "".join([*parts, "</svg>"])
