"""Compiling ahead of time: what the default engine runs for filters, sequences and views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tocsin.engine.engine import Engine
from tocsin.matching import create_matcher, registered_matchers
from tocsin.matching.starting_matcher import INDEX
from tocsin.structures.answering import compiling_first

_QUOTES: Final[list[dict[str, Any]]] = [
    {"name": name, "price": price, "risk": risk}
    for name, price, risk in (
        ("a", 10.0, 30),
        ("b", 12.0, 40),
        ("a", 20.0, 70),
        ("a", 9.0, 35),
        ("b", 8.0, 90),
    )
]


def compile_kernels(matchers: Sequence[str] = (INDEX,)) -> None:
    """Compile or load the kernels of these matchers, and those of sequences and views."""
    with compiling_first:
        for name in matchers:
            warm_up = getattr(create_matcher(name), "warm_up", None)
            if warm_up is not None:
                warm_up()
        _use_sequences()
        _use_views()


def all_matchers() -> tuple[str, ...]:
    """Return the names of all matchers."""
    return tuple(sorted(registered_matchers()))


def _use_sequences() -> None:
    engine = Engine()
    engine.subscribe(
        "from quotes a next quotes b on b.name = a.name where b.price > 1.5 * a.price", id="next"
    )
    engine.subscribe("from quotes a next quotes b where b.risk = 70", id="any")
    for second, quote in enumerate(_QUOTES):
        engine.publish(quote, stream="quotes", time=second)
    engine.publish_many(_QUOTES, stream="quotes")
    engine.unsubscribe("next")


def _use_views() -> None:
    engine = Engine()
    engine.table("quotes", key="name")
    for aggregate in ("min(price)", "max(price)", "count(*)", "sum(price)", "avg(price)"):
        engine.subscribe(f"select {aggregate} from table quotes where risk between 20 and 60", id=aggregate)  # noqa: S608
    for second, quote in enumerate(_QUOTES):
        engine.publish(quote, stream="quotes", time=second)
    engine.publish_many(_QUOTES, stream="quotes")
    engine.unsubscribe("min(price)")
