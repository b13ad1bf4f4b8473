"""The trades of the worked examples: nine of them, two at the same time."""

from tests.sequences.outcomes import event

TRADES = [
    event("e1", 1, name="IBM", price=100, vol=12000),
    event("e2", 2, name="MSFT", price=30, vol=500),
    event("e3", 3, name="IBM", price=95, vol=400),
    event("e4", 4, name="IBM", price=90, vol=300),
    event("e5", 5, name="MSFT", price=24, vol=700),
    event("e6", 6, name="IBM", price=99, vol=200),
    event("e7", 7, name="IBM", price=97, vol=20000),
    event("e8", 7, name="MSFT", price=26, vol=100),
    event("e9", 8, name="IBM", price=110, vol=50),
]
OVERLAPPING = [
    event("x1", 1, 1, "x"),
    event("x2", 4, 1, "x"),
    event("x3", 5, 3, "x"),
    event("x4", 6, 2, "x"),
    event("x5", 6, 6, "x"),
]
CYCLE = [event(f"k{k}.", k, name=k % 3) for k in range(23)]
