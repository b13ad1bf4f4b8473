from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.opindex.workloads.products import (
    Catalogue,
    ProductParameters,
    ProductWorkload,
    log_frequencies,
    make_catalogue,
    read_catalogue,
)
from tocsin.language.semantics import truth
from tocsin.model.conditions import Operator, Predicate
from tocsin.model.errors import TocsinError
from tocsin.model.values import Value

ROWS: list[dict[str, Value]] = [
    {"brand": "A", "price": 3, "new": True},
    {"brand": "B", "price": 3.0},
    {"brand": "A", "price": 9.5, "voltage": "5 V"},
]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return make_catalogue(products=1_000, attributes=400)


def subscriptions(workload: ProductWorkload, count: int) -> list[list[Predicate]]:
    (batch,) = workload.subscriptions(0, count, batch=count)
    found = [workload.pool.predicates[place] for place in batch.places]
    return [found[begin:end] for begin, end in pairwise(batch.offsets.tolist())]


def test_a_catalogue_gives_its_products_back() -> None:
    catalogue = Catalogue.of(ROWS)
    assert [catalogue.row(product) for product in range(3)] == ROWS
    assert dict(zip(catalogue.names, catalogue.frequencies.tolist(), strict=True)) == {
        "brand": 3,
        "price": 3,
        "new": 1,
        "voltage": 1,
    }
    assert len(catalogue.values) == 6  # 3 and 3.0 are one


def test_a_catalogue_is_read_from_json_lines(tmp_path: Path) -> None:
    lines = [json.dumps({"id": i, "size": {"w": i}, "tags": [1]}) for i in range(3)] + ["{", '{"id": 3}']
    with pa.CompressedOutputStream(str(tmp_path / "products.jsonl.zst"), "zstd") as file:
        file.write("\n".join(lines).encode())
    catalogue = read_catalogue(tmp_path / "products.jsonl.zst")
    assert [catalogue.row(product) for product in range(len(catalogue))] == [{"size.w": i} for i in range(3)]
    with pytest.raises(TocsinError, match=r"products\.jsonl\.zst has no products; it should have objects"):
        read_catalogue(tmp_path / "products.jsonl.zst", without=("id", "size.w"))


def test_a_made_up_catalogue_is_sparse_and_skewed(catalogue: Catalogue) -> None:
    frequencies = np.sort(catalogue.frequencies)
    assert np.diff(catalogue.products.offsets).mean() < 30
    assert frequencies[-1] == 1_000
    assert np.median(frequencies) < 50
    assert 0.2 < catalogue.is_number.mean() < 0.8
    same = make_catalogue(products=1_000, attributes=400)
    assert catalogue.row(17) == same.row(17)


def test_attributes_are_drawn_by_the_logarithm_of_their_frequency(catalogue: Catalogue) -> None:
    rows = subscriptions(ProductWorkload(catalogue, ProductParameters(most_predicates=1)), 30_000)
    found = Counter(row[0].subject.path for row in rows)  # type: ignore[union-attr]
    weights = np.log(catalogue.frequencies)
    frequent = np.argsort(weights)[-30:]
    expected = weights[frequent].sum() / weights.sum()
    assert sum(found[catalogue.names[one]] for one in frequent) / 30_000 == pytest.approx(expected, rel=0.1)
    assert all(log_frequencies(catalogue)._weights[catalogue.frequencies == 1] == 0)  # type: ignore[index]


def test_predicates_are_over_the_values_that_an_attribute_has(catalogue: Catalogue) -> None:
    rows = subscriptions(ProductWorkload(catalogue, ProductParameters()), 3_000)
    known = {
        (catalogue.names[o], v) for o, v in zip(catalogue.owners.tolist(), catalogue.values, strict=True)
    }
    assert {len(row) for row in rows} == set(range(1, 9))
    strings, numbers = Counter[Operator](), Counter[Operator]()
    for row in rows:
        assert len({one.subject for one in row}) == len(row)
        for one in row:
            values = [operand.value for operand in one.operands]  # type: ignore[union-attr]
            assert all((one.subject.path, value) in known for value in values)  # type: ignore[union-attr]
            (strings if isinstance(values[0], str) else numbers)[one.operator] += 1
            if one.operator is Operator.IN:
                assert 1 <= len(set(values)) == len(values) < 6
            if one.operator is Operator.BETWEEN:
                assert values[0] <= values[1]  # type: ignore[operator]
    assert strings.keys() == {Operator.EQ, Operator.IN}
    assert strings[Operator.IN] / strings.total() == pytest.approx(0.5, abs=0.03)
    assert numbers.keys() == {Operator.EQ, Operator.LE, Operator.GE, Operator.BETWEEN}


def test_a_subscription_drawn_from_one_product_is_satisfied_by_a_product(catalogue: Catalogue) -> None:
    workload = ProductWorkload(catalogue, ProductParameters(from_one=True))
    products = [catalogue.row(product) for product in range(len(catalogue))]
    for row in subscriptions(workload, 200):
        assert len({one.subject for one in row}) == len(row)
        assert any(all(truth(one, product) is True for one in row) for product in products)


def test_a_subscription_has_no_more_predicates_than_its_product_attributes() -> None:
    workload = ProductWorkload(Catalogue.of(ROWS), ProductParameters(from_one=True))
    assert {len(row) for row in subscriptions(workload, 500)} == {1, 2, 3}


def test_events_are_products_and_batches_make_no_difference(catalogue: Catalogue) -> None:
    workload = ProductWorkload(catalogue, ProductParameters(), seed=3)
    whole = [row for batch in workload.events(0, 500, batch=500) for row in batch.rows]
    assert [row for batch in workload.events(200, 500, batch=70) for row in batch.rows] == whole[200:]
    products = [catalogue.row(product) for product in range(len(catalogue))]
    assert all(row in products for row in whole[:20])
    expected = subscriptions(ProductWorkload(catalogue, ProductParameters(), seed=3), 40_000)
    parts = [
        [workload.pool.predicates[place] for place in batch.places[begin:end]]
        for batch in workload.subscriptions(0, 40_000, batch=9_000)
        for begin, end in pairwise(batch.offsets.tolist())
    ]
    assert parts == expected
