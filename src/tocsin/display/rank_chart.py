"""A small chart of how much the first few of many have, in SVG."""

from __future__ import annotations

from math import log10
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.display.html import escaped

_WIDTH: Final = 560
_HEIGHT: Final = 160
_LEFT: Final = 44
_TOP: Final = 10
_RIGHT: Final = 16
_POINTS: Final = 120
_STYLE: Final = (  # for a file of its own; in a notebook, the box's style has the same names
    "text{font:11px system-ui,sans-serif;fill:#52606d}.grid{stroke:#d9dee3}.axis{stroke:#9aa5b1}"
    ".curve{fill:none;stroke:#2f6fab;stroke-width:2}.bar{fill:#2f6fab}"
)


def rank_chart(sums: NDArray[np.float64], of: str, noun: str) -> str:
    """Return a curve of the share that the first 1, 2, 3, … have, given their sums; the numbers are on a logarithmic axis.

    Pointing at the curve shows the share there.
    """
    total = float(sums[-1]) if len(sums) else 0.0
    if total <= 0:
        return ""
    count, bottom, room = len(sums), _TOP + _HEIGHT, _WIDTH - _LEFT - _RIGHT
    ranks = np.unique(np.geomspace(1, count, min(_POINTS, count)).round().astype(int))

    def place(rank: float) -> float:
        return _LEFT + (room * log10(rank) / log10(count) if count > 1 else room / 2)

    points = [(place(rank), bottom - _HEIGHT * float(sums[rank - 1]) / total) for rank in ranks.tolist()]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 38}" width="{_WIDTH}" height="{bottom + 38}" role="img">',
        f"<title>{escaped(f'The share of the {of} that the costliest {noun} have')}</title>",
        f"<style>{_STYLE}</style>",
    ]
    for share in (0, 50, 100):
        y = bottom - _HEIGHT * share / 100
        kind = "axis" if share == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{_LEFT}" y1="{y:.0f}" x2="{_WIDTH - _RIGHT}" y2="{y:.0f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{share} %</text>')
    parts += [
        f'<text x="{place(rank):.1f}" y="{bottom + 16}" text-anchor="middle">{rank:,}</text>'
        for rank in _ticks(count)
    ]
    parts.append(
        f'<text x="{_LEFT + room / 2:.0f}" y="{bottom + 33}" text-anchor="middle">{escaped(f"share of the {of} that the costliest {noun} have, by their number")}</text>'
    )
    if len(points) > 1:
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="curve" points="{line}"/>')
    for rank, (x, y) in zip(ranks.tolist(), points, strict=True):
        shown = f"{rank:,}: {100 * float(sums[rank - 1]) / total:.3g} % of the {of}"
        parts.append(
            f'<circle class="bar" cx="{x:.1f}" cy="{y:.1f}" r="2.5"><title>{escaped(shown)}</title></circle>'
        )
    return "".join([*parts, "</svg>"])


def _ticks(count: int) -> list[int]:
    """Return the numbers to write below the axis: powers of ten, and the last where there is room for it."""
    powers = [10**power for power in range(len(str(count))) if 10**power <= count]
    if count > 2.5 * powers[-1] or len(powers) == 1:
        return sorted({*powers, count})
    return powers if count == powers[-1] else [*powers[:-1], count]
