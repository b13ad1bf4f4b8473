"""An index in a folder gives what the engine gives, whatever its shards, its changes and its generations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.index.reading import found_by, visits
from tests.strategies import conditions, crowded, events
from tocsin import Engine, Subscription, Template
from tocsin.engine import ManualClock
from tocsin.errors import ApplyError, SavedIndexError, SubscriptionError
from tocsin.index import IndexReader, SubscriptionIndex
from tocsin.index.contents import Contents
from tocsin.matching import EventBatch
from tocsin.matching.starting_matcher import StartingMatcher
from tocsin.model import Condition, Event, Filter

NAMES = [f"s{number}" for number in range(12)]
asked = st.dictionaries(st.sampled_from(NAMES), st.one_of(conditions(), crowded), min_size=1, max_size=8)


def engine_of(wanted: Mapping[str, Condition]) -> Engine:
    engine = Engine(matcher="oracle")
    for name, condition in wanted.items():
        engine.subscribe(Filter(condition), id=name)
    return engine


def expected(wanted: Mapping[str, Condition], batch: list[Event]) -> list[set[str]]:
    return [set(names) for names in engine_of(wanted).match(batch)]


@settings(max_examples=60)
@given(first=asked, second=asked, batch=st.lists(events, min_size=1, max_size=5), shards=st.integers(1, 4))
def test_every_generation_gives_the_engines_matches(
    first: dict[str, Condition], second: dict[str, Condition], batch: list[Event], shards: int
) -> None:
    rows = [event.attributes for event in batch]
    with TemporaryDirectory() as folder:
        index = SubscriptionIndex(f"{folder}/index", shards=shards)
        for name, condition in first.items():
            index.subscribe(Filter(condition), id=name)
        before = index.publish()
        reopened = SubscriptionIndex(f"{folder}/index")
        difference = reopened.apply({name: Filter(condition) for name, condition in second.items()})
        assert {*difference.added, *difference.changed, *difference.unchanged} == set(second)
        after = reopened.publish()
        assert set(reopened) == set(second)
        reader = IndexReader(f"{folder}/index")
        assert found_by(reader, before, rows) == expected(first, batch)
        assert found_by(reader, after, rows) == expected(second, batch)
        reopened.rebalance()
        assert found_by(reader, reopened.publish(), rows) == expected(second, batch)


@pytest.mark.parametrize("shards", [1, 3])
def test_a_template_s_rows_are_spread_and_found(tmp_path: Path, shards: int) -> None:
    random = np.random.default_rng(3)
    text = (
        "select symbol, price * :factor as worth from stock where symbol = :s and price > :p or day in :days"
    )
    rows = {
        "s": [f"S{number}" for number in random.integers(0, 40, 1500).tolist()],
        "p": random.integers(0, 100, 1500),
        "factor": random.random(1500),
        "days": [random.integers(0, 300, 2).tolist() for _ in range(1500)],
        "name": [f"n{number}" for number in range(1500)],
    }
    index, engine = SubscriptionIndex(tmp_path / "index", shards=shards), Engine(matcher="oracle")
    assert len(index.subscribe_many(text, rows, id="name").ids) == 1500
    engine.subscribe_many(text, rows, id="name")
    number = index.publish()
    events = [
        {"symbol": f"S{n}", "price": p, "day": d, "$stream": "stock"}
        for n, p, d in random.integers(0, 100, (60, 3)).tolist()
    ]
    reader = IndexReader(tmp_path / "index")
    plain = [{name: value for name, value in event.items() if name != "$stream"} for event in events]
    assert found_by(reader, number, events) == [set(names) for names in engine.match(plain, stream="stock")]
    selected = {
        (note.subscription, place): dict(note.values or {})
        for place, event in enumerate(plain)
        for note in engine.publish(event, stream="stock")
    }
    for shard, places in visits(reader, number, events).items():
        opened, batch = reader.shard(number, shard), EventBatch.of_dicts([events[place] for place in places])
        found = opened.match(batch, np.zeros(len(places), dtype=np.int64))
        ids, values = opened.ids(found.numbers).to_pylist(), opened.values(found, batch).to_pylist()
        for row, id_, value in zip(found.rows.tolist(), ids, values, strict=True):
            assert json.loads(value) == pytest.approx(selected.pop((id_, places[row])))
    assert not selected


def test_only_changed_rows_are_written(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index", shards=4)
    prices = list(range(3000))
    rows = {"s": [f"S{n % 30}" for n in range(3000)], "p": prices, "id": [f"n{n}" for n in range(3000)]}
    index.apply_many("symbol = :s and price > :p", rows, id="id")
    first = index.generations.read(index.publish())
    assert index.publish() == 1  # nothing has changed
    prices[17] = -1
    assert len(index.apply_many("symbol = :s and price > :p", rows, id="id").ids) == 3000
    second = index.generations.read(index.publish())
    kept = {shard.folder for shard in first.shards} & {shard.folder for shard in second.shards}
    assert len(kept) == 3
    assert second.router == first.router
    reader = IndexReader(tmp_path / "index")
    assert "n17" in found_by(reader, 2, [{"symbol": "S17", "price": 0}])[0]
    assert "n17" not in found_by(reader, 1, [{"symbol": "S17", "price": 0}])[0]


def test_shards_are_balanced_and_an_event_sees_few_of_them(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    symbols = np.minimum(random.zipf(1.3, 20_000), 400)  # one symbol has a quarter of all
    rows = {"s": [f"S{n}" for n in symbols.tolist()], "p": random.integers(0, 100, 20_000)}
    index = SubscriptionIndex(tmp_path / "index", shards=8)
    index.subscribe_many("symbol = :s and price > :p", rows)
    number = index.publish()
    generation = index.generations.read(number)
    sizes = [shard.subscriptions for shard in generation.shards]
    assert max(sizes) < 1.5 * 20_000 / 8
    events = [{"symbol": f"S{n}", "price": 50} for n in range(2, 100)]
    seen = visits(IndexReader(tmp_path / "index"), number, events)
    assert sum(map(len, seen.values())) < 1.5 * len(events)
    hot = visits(IndexReader(tmp_path / "index"), number, [{"symbol": "S1", "price": 50}])
    assert sum(map(len, hot.values())) > 1  # its subscriptions are spread over several


def test_an_event_that_satisfies_no_access_predicate_goes_nowhere(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index", shards=2)
    index.subscribe("symbol = 'IBM' and price > 3", id="a")
    index.subscribe("flag = true", id="b")
    number = index.publish()
    reader = IndexReader(tmp_path / "index")
    seen = visits(reader, number, [{"symbol": "MSFT"}, {"flag": 1}, {"symbol": "IBM"}, {"flag": True}])
    assert sorted(row for rows in seen.values() for row in rows) == [2, 3]


def test_subscriptions_without_an_access_predicate_are_found_on_any_shard(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index", shards=3)
    texts = {
        "gone": "a is missing",
        "sum": "a + b > 3",
        "all": "true",
        "none": "a = 1 and a = 2",
        "a": "a = 1",
    }
    for name, text in texts.items():
        index.subscribe(text, id=name)
    found = found_by(IndexReader(tmp_path / "index"), index.publish(), [{}, {"a": 1, "b": 5}, {"a": 2}])
    assert found == [{"gone", "all"}, {"sum", "all", "a"}, {"all"}]


def test_the_event_decides_validity_and_the_clock_frees_space(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("true", id="early", valid_until=100)
    index.subscribe("true", id="late", valid_from=100)
    index.subscribe("true", id="always")
    number = index.publish()
    reader = IndexReader(tmp_path / "index")
    assert found_by(reader, number, [{}], end=99) == [{"early", "always"}]
    assert found_by(reader, number, [{}], end=100) == [{"late", "always"}]
    engine = Engine(clock=ManualClock(0))
    for one in ("early", "late", "always"):
        terms: dict[str, Any] = {"early": {"valid_until": 100}, "late": {"valid_from": 100}}.get(one, {})
        engine.subscribe("true", id=one, **terms)
    assert {note.subscription for note in engine.publish({}, time=99)} == {"early", "always"}
    assert index.publish(lateness=0) == number + 1
    assert set(index) == {"late", "always"}


def test_a_faulty_set_changes_nothing_unless_on_error_is_given(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("a = 1", id="kept")
    index.subscribe("a = 2", id="gone")
    index.publish()
    with pytest.raises(ApplyError, match="kept"):
        index.apply({"kept": "a = = 1", "new": "b = 1"})
    assert set(index) == {"kept", "gone"}
    errors: list[SubscriptionError] = []
    difference = index.apply({"kept": "a = = 1", "new": "b = 1"}, on_error=errors.append)
    assert [error.id for error in errors] == ["kept"]
    assert (difference.added, difference.removed) == (("new",), ("gone",))
    assert found_by(IndexReader(tmp_path / "index"), index.publish(), [{"a": 1, "b": 1}]) == [{"kept", "new"}]


def test_subscriptions_replace_and_withdraw(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("a = 1", id="x")
    with pytest.raises(SubscriptionError, match="already"):
        index.subscribe("a = 2", id="x")
    index.subscribe("a = 2", id="x", replace=True)
    assert "x" in index
    assert len(index) == 1
    assert found_by(IndexReader(tmp_path / "index"), index.publish(), [{"a": 1}, {"a": 2}]) == [set(), {"x"}]
    index.unsubscribe("x")
    with pytest.raises(SubscriptionError, match="not in the index"):
        index.unsubscribe("x")
    assert found_by(IndexReader(tmp_path / "index"), index.publish(), [{"a": 2}]) == [set()]


def test_two_writers_cannot_publish_the_same_generation(tmp_path: Path) -> None:
    first, second = SubscriptionIndex(tmp_path / "index"), SubscriptionIndex(tmp_path / "index")
    first.subscribe("a = 1", id="x")
    second.subscribe("a = 2", id="y")
    first.publish()
    with pytest.raises(SavedIndexError, match="open it again"):
        second.publish()
    assert list(SubscriptionIndex(tmp_path / "index")) == ["x"]


def _foreign(folder: Path) -> None:
    (folder / "letter.txt").write_text("mine")


def _newer(folder: Path) -> None:
    SubscriptionIndex(folder)
    text = (folder / "index.json").read_text()
    (folder / "index.json").write_text(text.replace('"format": 1', '"format": 99'))


def _other(folder: Path) -> None:
    (folder / "index.json").write_text(
        '{"saved": "soup", "format": 1, "tocsin": "1", "shards": 1, "matcher": null}'
    )


def _broken(folder: Path) -> None:
    (folder / "index.json").write_text("{")


@pytest.mark.parametrize(
    ("make", "message"),
    [(_foreign, "choose another"), (_newer, "update Tocsin"), (_other, "soup"), (_broken, "something else")],
)
def test_a_folder_that_is_no_index_is_left_alone(
    tmp_path: Path, make: Callable[[Path], None], message: str
) -> None:
    make(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with pytest.raises(SavedIndexError, match=message):
        SubscriptionIndex(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def test_the_number_of_shards_is_for_life(tmp_path: Path) -> None:
    SubscriptionIndex(tmp_path / "index", shards=2)
    assert SubscriptionIndex(tmp_path / "index").shards == 2
    with pytest.raises(SavedIndexError, match="2 shards, not 3"):
        SubscriptionIndex(tmp_path / "index", shards=3)
    with pytest.raises(SavedIndexError, match="not 0"):
        SubscriptionIndex(tmp_path / "other", shards=0)


def test_a_small_index_needs_no_compiler_and_a_large_one_becomes_one(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("a = 1", id="x")
    reader = IndexReader(tmp_path / "index")
    small = reader.shard(index.publish(), 0).matcher
    assert isinstance(small, StartingMatcher)
    assert type(small.current).__name__ == "Oracle"
    index.subscribe_many("a = :a", {"a": list(range(2000))})
    assert type(reader.shard(index.publish(), 0).matcher).__name__ == "Adaptive"
    assert len(found_by(reader, 2, [{"a": 1}])[0]) == 2


def test_subscriptions_of_the_model_are_taken_as_they_are(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.apply([Subscription("x", Template("a = :a").bind({"a": 1}), valid_until=5)])
    number = index.publish()
    reader = IndexReader(tmp_path / "index")
    assert found_by(reader, number, [{"a": 1}], end=4) == [{"x"}]
    assert found_by(reader, number, [{"a": 1}], end=5) == [set()]


@pytest.mark.parametrize("shards", [1, 3])
def test_a_row_whose_list_is_empty_matches_nothing_and_spoils_nothing(tmp_path: Path, shards: int) -> None:
    index = SubscriptionIndex(tmp_path / "index", shards=shards)
    rows = [{"l": [], "id": "x"}, {"l": [1, 2], "id": "y"}, {"l": [2], "id": "z"}]
    index.subscribe_many("a in :l and b > 0", rows, id="id")
    found = found_by(IndexReader(tmp_path / "index"), index.publish(), [{"a": 2, "b": 1}, {"a": 1, "b": 1}])
    assert found == [{"y", "z"}, {"y"}]


def test_an_id_that_cannot_be_written_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index", shards=3)
    index.subscribe("a = 1", id="x\ny")
    with pytest.raises(SubscriptionError, match="half of a character"):
        index.subscribe("a = 1", id="\ud800")
    rows = index.subscribe_many("a = :v", [{"v": 1, "id": "\udfff"}, {"v": 1, "id": "é"}], id="id")
    assert ["half of a character" in str(error) for error in rows.errors] == [True]
    assert found_by(IndexReader(tmp_path / "index"), index.publish(), [{"a": 1}]) == [{"x\ny", "é"}]


def test_a_change_that_broke_off_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("a = 1", id="x")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Contents, "_fill", interrupt)
        with pytest.raises(KeyboardInterrupt):
            index.publish()
    with pytest.raises(SavedIndexError, match="open the index again"):
        index.publish()
    assert list(SubscriptionIndex(tmp_path / "index")) == []


@pytest.mark.parametrize("matcher", [None, "dynamic", "opindex"])
def test_rules_of_many_alternatives_are_routed_and_moved(tmp_path: Path, matcher: str | None) -> None:
    rule = " and ".join(f"({' or '.join(f'{name}{i} = {i}' for i in range(6))})" for name in "abcd")
    index = SubscriptionIndex(tmp_path / "index", shards=3, matcher=matcher)
    index.subscribe(rule, id="one")
    index.subscribe_many(rule.replace("a1 = 1", "a1 = :x"), {"x": list(range(5))}, id="r{x}")
    number = index.publish()
    wanted = Engine()
    wanted.subscribe(rule, id="one")
    wanted.subscribe_many(rule.replace("a1 = 1", "a1 = :x"), {"x": list(range(5))}, id="r{x}")
    batch: list[dict[str, object]] = [{"a1": a, "b2": 2, "c3": 3, "d5": d} for a in range(4) for d in (5, 6)]
    reader = IndexReader(tmp_path / "index")
    expected = [set(ids) for ids in wanted.match(batch)]
    assert sum(map(len, expected)) == 5
    assert found_by(reader, number, batch) == expected
    index = SubscriptionIndex(tmp_path / "index")
    index.unsubscribe("r2")
    index.rebalance()
    number = index.publish()
    expected = [ids - {"r2"} for ids in expected]
    assert found_by(reader, number, batch) == expected


def test_a_subscription_may_select_everything_and_more(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("select *, price * 2 as price, price as was from stock where price > 1", id="a")
    index.publish()
    shard = IndexReader(tmp_path / "index").shard(1, 0)
    batch = EventBatch([{"$stream": "stock", "price": 5, "name": "x"}])
    found = shard.match(batch, np.zeros(1, dtype=np.int64))
    assert shard.values(found, batch).to_pylist() == ['{"price":10,"name":"x","was":5}']
