from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.lesubscribe.workload import WORKLOADS, Parameters, Workload
from benchmarks.workloads.tabular import conditions_table, event_table, templates, text_table
from tocsin import Engine
from tocsin.replay.numbered import NumberedSubscriptions

FEW = Parameters(predicates=3, highest=3, event_highest=3, pairs=24)  # so that something matches
COUNT = 300


def subscriptions() -> Iterator[NumberedSubscriptions]:
    return Workload(FEW, seed=5).subscriptions(0, COUNT, batch=90)


def test_templates_and_texts_are_the_same_queries() -> None:
    by_template, by_text = Engine(), Engine()
    for one in templates(subscriptions()):
        made = by_template.subscribe_many(one.text, one.with_ids(), id="id")
        assert not made.errors
        assert len(made.ids) == len(one)
    for row in text_table(subscriptions()).to_pylist():
        by_text.subscribe(row["text"], id=row["id"])
    assert len(by_template) == len(by_text) == COUNT
    events = event_table(Workload(FEW, seed=5).events(0, 50), FEW.names)
    found, same = by_template.match(events), by_text.match(events)
    assert [set(row) for row in found] == [set(row) for row in same]
    assert len(found.ids) > 0


def test_a_condition_stands_in_its_attribute_s_column_and_the_others_are_null() -> None:
    texts = {row["id"]: row["text"] for row in text_table(subscriptions()).to_pylist()}
    for row in conditions_table(subscriptions(), FEW.names).to_pylist():
        id_ = str(row.pop("id"))
        asked = " and ".join(f"{name} = {value}" for name, value in row.items() if value is not None)
        assert asked == texts[id_]


def test_an_attribute_that_an_event_lacks_is_null() -> None:
    events = list(Workload(FEW).events(0, 60, batch=25))
    table = event_table(events, FEW.names, first=100)
    assert table.column("event_id").to_pylist() == list(range(100, 160))
    dicts = [row for batch in events for row in batch.to_dicts()]
    rows = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
    assert [{name: row[name] for name in row if name != "event_id"} for row in rows] == [
        dict(sorted(row.items(), key=lambda item: int(item[0][1:]))) for row in dicts
    ]


def test_other_than_equalities_are_refused() -> None:
    with pytest.raises(ValueError, match="only subscriptions of equalities"):
        text_table(Workload(WORKLOADS["W0 with ranges"]).subscriptions(0, 10))
    assert text_table(Workload(WORKLOADS["W0"]).subscriptions(0, 10)).num_rows == 10
