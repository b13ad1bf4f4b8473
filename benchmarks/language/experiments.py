"""The rates of reading subscriptions: texts one by one, and templates by the column."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from benchmarks.runner.benchmark import Benchmark, Experiment, Option
from benchmarks.runner.session import Progress, Session, scales, silent
from benchmarks.runner.tables import show_runs
from tocsin.language import Template, parse, to_dnf, to_text
from tocsin.matching import ConjunctionBatch
from tocsin.model import Condition, Filter

_SYMBOLS: Final = ["IBM", "MSFT", "AAPL", "GOOG", "AMZN"]
_REPEATS: Final = 5


SCALES: Final = scales(filters=(20_000, 20_000), rows=(1_000_000, 1_000_000))  # texts, and a template's rows


class LanguageSession(Session):
    """Times pieces of work on texts and on templates' rows."""

    def __init__(
        self, scale: Any, *, filters: int | None = None, rows: int | None = None, progress: Progress = silent
    ) -> None:
        scale = replace(scale, filters=filters or scale.filters, rows=rows or scale.rows)
        super().__init__(scale, progress)

    def target(self, name: str, label: str, at: float | str) -> float | None:  # noqa: ARG002 - at any scale
        """Return the rate to be reached on one core, or None."""
        return _TARGETS.get(name)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names, with the sizes."""
        return {**super().parameters(), "filters": self.scale.filters, "rows": self.scale.rows}

    def rate(self, name: str, of: str, work: Callable[[], object], count: int) -> None:
        """Record how many things a second the work does: the median of several runs."""
        self.tell(name)
        rates = []
        for _ in range(_REPEATS):
            start = time.perf_counter()
            work()
            rates.append(count / (time.perf_counter() - start))
        self.record_runs(name, of, rates, f"{of}/s", best=max(rates))


_TARGETS: Final = {
    "parse and normalise": 10_000.0,
    "template, columns": 500_000.0,
    "template, list of dicts": 500_000.0,
}


def filter_texts(count: int, seed: int = 1) -> list[str]:
    """Return `count` filters of five shapes, from two comparisons to a small boolean expression."""
    random = Random(seed)  # noqa: S311 - reproducible, not secret
    return [_text(i % 5, random.choice(_SYMBOLS), random.randint(1, 1000)) for i in range(count)]


def _texts(session: LanguageSession) -> None:
    count = session.scale.filters
    texts, simple = filter_texts(count), ["symbol = 'IBM' and price > 100"] * count
    conditions, queries = [_condition(text) for text in texts], [parse(text) for text in texts]
    works: Mapping[str, Callable[[], object]] = {
        "parse and normalise": lambda: [to_dnf(_condition(text)) for text in texts],
        "parse": lambda: [parse(text) for text in texts],
        "parse two comparisons": lambda: [parse(text) for text in simple],
        "normalise": lambda: [to_dnf(condition) for condition in conditions],
        "print": lambda: [to_text(query) for query in queries],
    }
    for name, work in works.items():
        session.rate(name, "filters", work, count)


def _templates(session: LanguageSession) -> None:
    template = Template("symbol = :s and price > :p")
    ids = np.arange(session.scale.rows, dtype=np.int64)
    columns = {"s": np.array(_SYMBOLS, dtype=object)[ids % len(_SYMBOLS)], "p": ids * 0.5}
    pairs = zip(columns["s"].tolist(), columns["p"].tolist(), strict=True)
    dicts: Sequence[Any] = [{"s": symbol, "p": price} for symbol, price in pairs]
    for name, rows in (("template, columns", columns), ("template, list of dicts", dicts)):
        session.rate(
            name,
            "subscriptions",
            lambda rows=rows: ConjunctionBatch.of_rows(ids, template.bind_many(rows)),  # type: ignore[misc]
            len(ids),
        )


def _condition(text: str) -> Condition:
    query = parse(text)
    if not isinstance(query, Filter):
        raise TypeError(f"not a filter: {text}")
    return query.condition


def _text(shape: int, symbol: str, price: int) -> str:
    return (
        f"symbol = '{symbol}' and price > {price}",
        f"symbol in ('{symbol}', 'X{price}') and price between {price} and {price + 10}",
        f"(symbol = '{symbol}' or sector = 'tech') and price >= {price}.5 and volume > {price * 100}",
        f"name like '{symbol}%' and not (price < {price} or volume <= 10)",
        f"from stock where symbol = '{symbol}' and price > 1.05 * open and city is present select symbol, price",
    )[shape]


BENCHMARK: Final = Benchmark(
    name="language",
    title="Reading subscriptions: texts one by one, and templates by the column.",
    sizes="both: half a minute",
    scales=SCALES,
    session=LanguageSession,
    experiments={
        "texts": Experiment("texts, one by one, on one core", "", _texts),
        "templates": Experiment("templates, by the column, on one core", "", _templates),
    },
    show=show_runs,
    options=(
        Option("filters", "How many texts to read.", int),
        Option("rows", "How many rows to give the template.", int),
    ),
)
