"""How fast subscriptions are read: texts one by one, and templates by the column."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

import numpy as np

from benchmarks.runner.report import Measurement, Report, rate
from tocsin.language import Template, parse, to_dnf, to_text
from tocsin.matching import ConjunctionBatch
from tocsin.model import Condition, Filter

Job: TypeAlias = tuple[Callable[[], Callable[[], object]], int, str, float | None]
"""How to prepare the work, how many things it does, their unit, and the target."""

_SYMBOLS = ["IBM", "MSFT", "AAPL", "GOOG", "AMZN"]


def filter_texts(count: int, seed: int = 1) -> list[str]:
    """Return `count` filters of five shapes, from two comparisons to a small boolean expression."""
    random = Random(seed)  # noqa: S311 - reproducible, not secret
    return [_text(i % 5, random.choice(_SYMBOLS), random.randint(1, 1000)) for i in range(count)]


def run(
    filters: int = 20_000, rows: int = 1_000_000, progress: Callable[[str], None] = lambda _: None
) -> Report:
    """Measure parsing, normalising and printing per second on one core, and templates' rows per second."""
    jobs = {**_text_jobs(filters), **_template_jobs(rows)}
    measurements = []
    for name, (prepare, count, unit, target) in jobs.items():
        progress(name)
        best, middle = rate(prepare(), count)
        measurements.append(Measurement(name, middle, unit, target, {"best": best}))
    return Report.of("language", measurements, filters=filters, rows=rows)


def _text_jobs(filters: int) -> dict[str, Job]:
    texts = filter_texts(filters)
    simple = ["symbol = 'IBM' and price > 100"] * filters

    def normalise() -> Callable[[], object]:
        conditions = [_condition(text) for text in texts]
        return lambda: [to_dnf(condition) for condition in conditions]

    def write() -> Callable[[], object]:
        queries = [parse(text) for text in texts]
        return lambda: [to_text(query) for query in queries]

    unit = "filters/s"
    return {
        "parse and normalise": (
            lambda: lambda: [to_dnf(_condition(t)) for t in texts],
            filters,
            unit,
            10_000,
        ),
        "parse": (lambda: lambda: [parse(t) for t in texts], filters, unit, None),
        "parse two comparisons": (lambda: lambda: [parse(t) for t in simple], filters, unit, None),
        "normalise": (normalise, filters, unit, None),
        "print": (write, filters, unit, None),
    }


def _template_jobs(rows: int) -> dict[str, Job]:
    template = Template("symbol = :s and price > :p")
    ids = np.arange(rows, dtype=np.int64)
    columns = {"s": np.array(_SYMBOLS, dtype=object)[ids % len(_SYMBOLS)], "p": ids * 0.5}

    def from_columns() -> Callable[[], object]:
        return lambda: ConjunctionBatch.of_rows(ids, template.bind_many(columns))

    def from_dicts() -> Callable[[], object]:
        pairs = zip(columns["s"].tolist(), columns["p"].tolist(), strict=True)
        dicts = [{"s": symbol, "p": price} for symbol, price in pairs]
        return lambda: ConjunctionBatch.of_rows(ids, template.bind_many(dicts))

    return {
        "template, columns": (from_columns, rows, "subscriptions/s", 500_000),
        "template, list of dicts": (from_dicts, rows, "subscriptions/s", 500_000),
    }


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
