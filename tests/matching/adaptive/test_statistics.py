"""An adaptive matcher with statistics chooses its access paths before the first event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.matching.adaptive.invariants import check_invariants
from tocsin.language import Template, parse_condition, to_dnf
from tocsin.matching import (
    ConjunctionBatch,
    ConjunctionGroup,
    EventBatch,
    Oracle,
    Statistics,
    open_matcher,
    save_matcher,
)
from tocsin.matching.adaptive.matcher import EAGER, Adaptive, Thresholds
from tocsin.matching.adaptive.state import CODE_BITS, OP_BITS, Code, GridRow, Slot, Top
from tocsin.matching.encoding.codes import FIELDS, Op
from tocsin.structures import hash_index

UNPLANNED = Thresholds(events=1 << 40)  # plans on adding only
FIRST = 1_000  # subscriptions, fewer than are planned for


def events(count: int, seed: int) -> list[dict[str, Any]]:
    """Return events with ten shops and a thousand products, mostly low prices and mostly high weights."""
    random = np.random.default_rng(seed)
    shops, products = random.integers(10, size=count).tolist(), random.integers(1_000, size=count).tolist()
    prices, weights = (100 * random.random(count) ** 8).tolist(), (100 * random.random(count) ** 0.1).tolist()
    columns = zip(shops, products, prices, weights, strict=True)
    return [
        {"shop": s, "product": f"p{p}", "price": price, "weight": weight} for s, p, price, weight in columns
    ]


def history() -> Statistics:
    return Statistics.of(events(20_000, seed=1))


def equalities(count: int) -> ConjunctionBatch:
    """Return subscriptions to one of ten shops and one of ten products."""
    numbers = np.arange(count)
    return ConjunctionBatch.of_rows(
        numbers,
        Template("shop = :shop and product = :product").bind_many(
            {"shop": numbers % 10, "product": [f"p{number // 10 % 10}" for number in numbers]}
        ),
    )


def bounds(count: int) -> ConjunctionBatch:
    """Return subscriptions to a price and a weight from somewhere on."""
    random = np.random.default_rng(6)
    constants = dict(zip("pw", random.integers(40, 100, size=(2, count)), strict=True))
    return ConjunctionBatch.of_rows(
        np.arange(count), Template("price > :p and weight > :w").bind_many(constants)
    )


def some(batch: ConjunctionBatch, begin: int, end: int) -> ConjunctionBatch:
    (group,) = batch.groups
    columns = {name: column[begin:end] for name, column in group.columns.items()}
    return ConjunctionBatch((ConjunctionGroup(group.shape, group.ids[begin:end], columns),))


def attributes(matcher: Adaptive, slots: Any) -> tuple[str, ...]:
    names = matcher.vocabulary.names
    return tuple(
        sorted(names.value(int(field) // FIELDS) for field in matcher._state.slots.rows[slots, Slot.FIELD])
    )


def planned(matcher: Adaptive) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
    """Return the attributes of each table, and of each grid."""
    tables, grids = matcher._state.tables, matcher._state.grids
    made = np.flatnonzero(tables.width).tolist()
    return (
        {attributes(matcher, tables.slots[table, : tables.width[table]]) for table in made},
        {
            attributes(matcher, grids.rows[grid, [GridRow.SLOT]])
            for grid in range(int(matcher._state.tops[Top.GRIDS]))
        },
    )


@pytest.mark.parametrize("batch", [equalities(4_000), bounds(8_000)], ids=["equalities", "bounds"])
def test_the_first_plan_chooses_what_many_events_teach(batch: ConjunctionBatch) -> None:
    plain, taught = Adaptive(thresholds=UNPLANNED), Adaptive(thresholds=UNPLANNED)
    informed = Adaptive(thresholds=UNPLANNED, statistics=history())
    for matcher in (plain, taught, informed):
        matcher.add(some(batch, 0, FIRST))
    for seed in range(20):
        taught.match(EventBatch.of_dicts(events(1_000, seed)))
    for matcher in (plain, taught, informed):
        matcher.add(some(batch, FIRST, 1 << 60))
    assert planned(informed) == planned(taught) != planned(plain)
    check_invariants(informed)


def test_statistics_that_come_later_plan_at_once() -> None:
    batch = bounds(8_000)
    late, informed = Adaptive(thresholds=UNPLANNED), Adaptive(thresholds=UNPLANNED, statistics=history())
    late.add(batch)
    assert planned(late) == (set(), set())
    late.use_statistics(history())
    informed.add(batch)
    assert planned(late) == planned(informed) == (set(), {("price",)})
    for _ in range(20):
        late.match(EventBatch.of_dicts(events(1_000, seed=2)))
    assert late.stats().details["conjunctions moved"] > 0
    check_invariants(late)


def test_each_equality_has_its_probability_also_such_as_come_later() -> None:
    matcher, statistics = Adaptive(), history()
    texts = [
        "shop = 3",
        "product = 'p7'",
        "product = 'p70' and price > 3",
        "shop = 77",
        "product starts with 'p1'",
    ]
    for i, text in enumerate(texts):
        matcher.add(ConjunctionBatch.of([(i, to_dnf(parse_condition(text)))]))
        if i == 2:
            matcher.use_statistics(statistics, weight=8_000)
    entries = matcher._state.predicates.entries
    rows = entries.keys[: hash_index.top_entry(entries)]
    equal = rows[rows[:, Code.TAG] >> OP_BITS == Op.EQ, Code.USE]
    hits = (equal >> CODE_BITS).astype(np.int32).view(np.float32)
    wanted = [to_dnf(parse_condition(text)).conjunctions[0][0] for text in texts]
    assert hits.tolist() == pytest.approx([1_000 * statistics.probability(one) for one in wanted])
    check_invariants(matcher)


def test_statistics_change_no_answer_and_are_saved(tmp_path: Path) -> None:
    batch, oracle = equalities(3_000), Oracle()
    matcher = Adaptive(thresholds=EAGER, statistics=history())
    late = ConjunctionBatch.of(
        (i, to_dnf(parse_condition(f"shop in ({i % 7}, 'x') and unheard = {i % 2} or weight < 3")))
        for i in range(5_000, 5_040)
    )
    arriving = EventBatch.of_dicts(events(60, seed=3))
    for each in (matcher, oracle):
        each.add(batch)
    assert matcher.match(arriving).to_lists() == oracle.match(arriving).to_lists()
    save_matcher(matcher, tmp_path)
    opened = open_matcher(tmp_path)
    assert isinstance(opened, Adaptive)
    for each in (matcher, opened, oracle):
        each.add(late)
        each.remove(np.arange(0, 3_000, 3))
    opened.use_statistics(Statistics.of([]))
    for one in (matcher, opened):
        assert one.match(arriving).to_lists() == oracle.match(arriving).to_lists()
        check_invariants(one)


def test_a_refused_subscription_leaves_no_equality(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = Adaptive(statistics=history())
    matcher.add(equalities(10))

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(matcher, "_settle", fail)
        with pytest.raises(MemoryError):
            matcher.add(equalities(100))
    check_invariants(matcher)
    assert matcher.stats().conjunctions == 10
