"""The worked examples of the algebra: a text, the events, and the matches with their times."""

from __future__ import annotations

from tests.sequences.stocks import CYCLE, OVERLAPPING, TRADES
from tocsin.model import Event

_PAIRS = "e1e2[1,2] e2e3[2,3] e3e4[3,4] e4e5[4,5] e5e6[5,6] e6e7[6,7] e6e8[6,7] e7e9[7,8] e8e9[7,8]"
_SAME = "e1e3[1,3] e2e5[2,5] e3e4[3,4] e4e6[4,6] e5e8[5,7] e6e7[6,7] e7e9[7,8]"
_FALL = """from stock a where a.vol > 10000
    fold stock b on b.name = a.name while b.price < last.price where duration >= 3
    next stock c on c.name = a.name where c.price > 1.05 * b.price
    select a.price as highest, b.price as lowest, c.price as final"""
_COUNTED = """from stock a where a.vol > 10000 compute cnt = 1
    fold stock b on b.name = last.name while b.price < last.price compute cnt = last.cnt + 1"""

VECTORS: dict[str, tuple[str, list[Event], str]] = {
    "the next event, all that are simultaneous": ("from stock a next stock b", TRADES, _PAIRS),
    "the next event of the same name": ("from stock a next stock b on b.name = a.name", TRADES, _SAME),
    "the next one fails the selection, and nothing follows": (
        "from stock a where a.name = 'IBM' and a.price >= 100 next stock b on b.name = 'MSFT' where b.price < 25",
        TRADES,
        "",
    ),
    "S3": (
        "from stock a next stock b on b.name = a.name where b.price > 1.05 * a.price",
        TRADES,
        "e4e6[4,6] e5e8[5,7] e7e9[7,8]",
    ),
    "a fall from a large trade on": (
        _COUNTED,
        TRADES,
        "e1e3[1,3] e1e3e4[1,4]",
    ),
    "AutQ": (_FALL, TRADES, "e1e3e4e6[1,6]"),
    "iteration alone": (
        "from stock a where a.vol = 12000 fold stock b on b.name = a.name",
        TRADES,
        "e1e3[1,3] e1e3e4[1,4] e1e3e4e6[1,6] e1e3e4e6e7[1,7] e1e3e4e6e7e9[1,8]",
    ),
    "events that overlap": ("from x a next x b", OVERLAPPING, "x1x3[1,5] x2x5[1,6] x3x5[3,6]"),
    "23 events in a cycle of three": (
        "from stock a next stock b on b.name = a.name",
        CYCLE,
        " ".join(f"k{k}.k{k + 3}.[{k},{k + 3}]" for k in range(20)),
    ),
}
