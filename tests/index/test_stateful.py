"""Sequences and views in an index: what a generation holds of them, and who gets which number."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.index.reading import found_by
from tocsin import Engine, Subscription
from tocsin.engine import ManualClock
from tocsin.engine.saving.stateful import fill_engine
from tocsin.errors import ApplyError, LanguageError, SavedIndexError, SubscriptionError, TocsinError
from tocsin.index import IndexReader, StatefulSubscription, StatefulSubscriptions, SubscriptionIndex
from tocsin.index.numbered import HeldSubscriptions
from tocsin.language import parse
from tocsin.model.options import SubscriptionOptions, Validity

RISE = "from stock a next stock b on b.symbol = a.symbol where b.price > a.price"
RISES = "from quotes a next quotes b on b.s = a.s and b.price > :p * a.price where a.s = :s"
BEST = "select min(price) from table stock where risk between 2 and 6"
FILTER = "price > 3"


def new_index(folder: Path, **options: Any) -> SubscriptionIndex:
    index = SubscriptionIndex(folder / "index", **options)
    index.table("stock", key="symbol")
    return index


def published(index: SubscriptionIndex) -> StatefulSubscriptions:
    """Publish, and return what another process reads."""
    number = index.publish()
    found = IndexReader(index.generations.storage.uri).stateful(number)
    assert found is not None
    return found


def numbers(stateful: StatefulSubscriptions | None) -> dict[str, tuple[int, int]]:
    """The number and the generation of each sequence and view."""
    return {one.id: (one.number, one.added) for one in stateful.subscriptions()} if stateful else {}


def by_id(stateful: StatefulSubscriptions) -> dict[str, StatefulSubscription]:
    return {one.id: one for one in stateful.subscriptions()}


def linked(stateful: StatefulSubscriptions) -> dict[str, str]:
    return {one.id: one.text for run in stateful.linked_filters for one in run}


def told(engine: Engine, events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The notifications of each event."""
    return sorted(
        (row, note.subscription, str(note.new), str(note.values))
        for row, event in enumerate(events)
        for note in engine.publish(event, stream="stock", time=row)
    )


def stock(count: int = 60) -> list[dict[str, Any]]:
    random = np.random.default_rng(7)
    columns = random.integers(0, 9, (count, 3)).tolist()
    return [{"symbol": "AB"[s % 2], "price": p, "risk": r} for s, p, r in columns]


def test_a_generation_has_all_kinds_with_their_options(tmp_path: Path) -> None:
    index = new_index(tmp_path, shards=2)
    index.stream("quotes", tick="1 second")
    index.subscribe(FILTER, id="filter")
    index.subscribe(RISE, id="rise", owner="ann", witness="full", weight=2.0, valid_from=5)
    index.subscribe(BEST, id="best", valid_until=900)
    index.subscribe_many(RISES, {"s": ["A", "B"], "p": [1, 2.5]}, id="{s}", owner="bob", valid_until=10)
    assert (len(index), set(index)) == (5, {"filter", "rise", "best", "A", "B"})
    found = published(index)
    one = by_id(found)
    assert one["rise"] == (0, 1, "rise", RISE, SubscriptionOptions(Validity(5), "ann", 2.0, "full"))
    assert one["best"] == (1, 1, "best", BEST, SubscriptionOptions(Validity(valid_until=900)))
    assert one["B"].options == SubscriptionOptions(Validity(valid_until=10), "bob")
    assert "2.5 * a.price" in one["B"].text
    assert "'B'" in one["B"].text
    assert (found.tables, found.ticks) == ({"stock": ("symbol",)}, {"quotes": 1_000_000})
    assert [type(run.run.template).__name__ for run in found.runs] == ["NoneType", "StoredTemplate"]
    reopened = SubscriptionIndex(tmp_path / "index")
    assert (len(reopened), set(reopened), reopened.has_changes) == (5, set(index), False)
    assert "best" in reopened
    for name in ("best", "filter", "A"):
        reopened.unsubscribe(name)
        assert name not in reopened
    with pytest.raises(SubscriptionError, match="not in the index"):
        reopened.unsubscribe("A")
    assert numbers(published(reopened)) == {"rise": (0, 1), "B": (3, 1)}
    assert found_by(IndexReader(tmp_path / "index"), 1, [{"price": 4}]) == [{"filter"}]
    assert found_by(IndexReader(tmp_path / "index"), 2, [{"price": 4}]) == [set()]


def test_an_engine_filled_from_an_index_notifies_like_one_subscribed_to(tmp_path: Path) -> None:
    index, wanted = new_index(tmp_path), Engine(clock=ManualClock(0))
    wanted.table("stock", key="symbol")
    rows = {"l": [0, 2, 4], "h": [3, 6, 9]}
    risks = "select max(price) from table stock where risk between :l and :h"
    for one in (index, wanted):
        one.stream("stock", tick="1 second")
        one.subscribe(RISE + " within 9 seconds publish as rises", id="rise")
        one.subscribe(BEST, id="best")
        one.subscribe_many(risks, rows, id="{l}-{h}")
        one.subscribe_many(RISE + " and a.risk > :r", {"r": [1, 5]}, id="r{r}")
        one.subscribe("from rises where b.price > 7", id="high")
    found = published(index)
    assert linked(found).keys() == {"high"}
    filled = Engine(clock=ManualClock(0))
    fill_engine(filled, found)
    assert set(filled.subscriptions()) == set(wanted.subscriptions())
    expected = told(wanted, stock())
    assert told(filled, stock()) == expected
    assert {id_ for _, id_, *_ in expected} == set(index)

    chosen = [number for id_, (number, _) in numbers(found).items() if id_ in ("r1", "2-6")]
    part = Engine(clock=ManualClock(0))
    fill_engine(part, found, chosen)
    assert {one.id for one in part.subscriptions()} == {"r1", "2-6"}
    assert told(part, stock()) == [note for note in expected if note[1] in ("r1", "2-6")]


def test_numbers_and_generations_stay_with_what_is_unchanged(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    first = index.apply({"a": RISE, "b": BEST, "c": RISE, "f": FILTER})
    assert first.added == ("a", "b", "c", "f")
    assert numbers(published(index)) == {"a": (0, 1), "b": (1, 1), "c": (2, 1)}
    index = SubscriptionIndex(tmp_path / "index")
    changed = RISE.replace("b.price >", "b.price <")
    second = index.apply({"a": RISE, "b": FILTER, "c": changed, "d": BEST, "f": RISE})
    assert (second.added, second.changed) == (("d",), ("b", "c", "f"))
    assert (second.removed, second.unchanged) == ((), ("a",))
    assert numbers(published(index)) == {"a": (0, 1), "d": (3, 2), "c": (4, 2), "f": (5, 2)}
    assert found_by(IndexReader(tmp_path / "index"), 2, [{"price": 4}]) == [{"b"}]
    index.publish()
    index.apply([Subscription("a", parse(RISE), valid_until=5)])
    assert numbers(published(index)) == {"a": (6, 3)}
    index.apply({})
    assert IndexReader(tmp_path / "index").stateful(index.publish()) is None
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe(RISE, id="a")
    assert numbers(published(index)) == {"a": (7, 5)}
    index.subscribe(RISE, id="a", replace=True)
    with pytest.raises(SubscriptionError, match="already"):
        index.subscribe(BEST, id="a")
    assert numbers(published(index)) == {"a": (8, 6)}


def test_only_changed_rows_of_a_template_get_new_numbers(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    prices: list[float] = [1.0 + n for n in range(300)]
    rows = {"s": [f"S{n}" for n in range(300)], "p": prices}
    index.subscribe(RISE, id="gone")
    assert len(index.apply_many(RISES, rows, id="{s}").ids) == 300
    before = numbers(published(index))
    index = SubscriptionIndex(tmp_path / "index")
    prices[7], prices[8] = -5, 9
    assert len(index.apply_many(RISES, rows, id="{s}").ids) == 300
    found = published(index)
    assert {id_ for id_, number in numbers(found).items() if before.get(id_) != number} == {"S7"}
    assert numbers(found)["S7"] == (301, 2)
    assert len(found) == 300
    assert "-5 * a.price" in by_id(found)["S7"].text
    same = {**rows, "p": [True, *prices[1:]]}
    assert [error.row for error in index.apply_many(RISES, same, id="{s}").errors] == [0]
    assert "S0" not in index
    index.apply_many(RISES + " within 5 ticks", rows, id="{s}")  # another template changes all
    assert {added for _, added in numbers(published(index)).values()} == {3}
    index.apply_many("price > :p", {"p": [1, 2]}, id="{p}")
    assert set(index) == {"1", "2"}


def test_an_index_of_filters_is_written_as_before(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index", shards=2)
    index.subscribe(FILTER, id="x")
    with pytest.raises(SubscriptionError, match="no table"):
        index.subscribe(BEST, id="v")
    index.subscribe(RISE, id="s")
    index.unsubscribe("s")
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe(FILTER, id="x")
    index.publish()
    files = {str(path.relative_to(tmp_path / "index")) for path in (tmp_path / "index").glob("*")}
    assert files == {"index.json", "generations", "shards", "routers"}
    home = json.loads((tmp_path / "index/index.json").read_text())
    written = json.loads((tmp_path / "index/generations/000000000001.json").read_text())
    assert home["format"] == 1
    assert list(written) == ["number", "created", "shards", "router", "attributes", "placement"]
    index.subscribe(RISE, id="s")
    index.publish()
    raised = json.loads((tmp_path / "index/index.json").read_text())
    assert raised == {**home, "format": 2}
    reader = IndexReader(tmp_path / "index")
    reader.renew()
    assert (reader.stateful(1), len(reader.stateful(2) or ())) == (None, 1)
    assert found_by(reader, 1, [{"price": 4}]) == found_by(reader, 2, [{"price": 4}]) == [{"x"}]


def test_declarations_alone_are_published(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe(FILTER, id="f")
    index.publish()
    index.table("stock", key=["symbol", "day"])
    index.stream("quotes", tick=5)
    assert index.has_changes
    assert IndexReader(tmp_path / "index").stateful(index.publish()) is None
    index = SubscriptionIndex(tmp_path / "index")
    index.table("stock", key=["symbol", "day"])
    index.stream("quotes", tick=5)
    assert not index.has_changes
    with pytest.raises(TocsinError, match="has the key `symbol`, `day` already"):
        index.table("stock", key="symbol")
    index.subscribe(BEST, id="v")
    index.subscribe_many(RISES, {"s": ["A"], "p": [1]})
    with pytest.raises(TocsinError, match="before they are subscribed"):
        index.stream("quotes", tick=6)
    assert published(index).ticks == {"quotes": 5}
    with pytest.raises(TocsinError, match="before they are subscribed"):
        SubscriptionIndex(tmp_path / "index").stream("quotes", tick=6)


def test_faults_are_those_of_an_engine(tmp_path: Path) -> None:
    index, engine = new_index(tmp_path), Engine()
    engine.table("stock", key="symbol")
    index.subscribe(RISE + " publish as rises", id="rise")
    engine.subscribe(RISE + " publish as rises", id="rise")
    index.stream("slow", tick="1 day")
    engine.stream("slow", tick="1 day")
    texts = [
        "from stock a next stock b on b.price >",
        "from rises a next rises b publish as stock",
        "from slow a next stock b",
        "from slow a next slow b publish as stock",
        "select min(price), max(price) from table stock",
        "select distinct price, risk from table stock",
    ]
    for text in texts:
        with pytest.raises(TocsinError) as refused:
            index.subscribe(text, id="x")
        with pytest.raises(type(refused.value)) as expected:
            engine.subscribe(text, id="x")
        assert str(refused.value) == str(expected.value)
    with pytest.raises(LanguageError, match="column 39"):
        index.subscribe(texts[0])
    with pytest.raises(SubscriptionError, match=r"did you mean `stock`.*`index.table\(\"stok\", key="):
        index.subscribe("select min(price) from table stok")
    with pytest.raises(SubscriptionError, match="no table `other`"):
        index.subscribe_many("select min(x) from table other where y > :y", {"y": [1]})
    assert list(index) == ["rise"]
    assert not SubscriptionIndex(tmp_path / "index").has_changes or index.publish() == 1


def test_a_faulty_set_changes_nothing_or_all_but_the_faulty(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.apply({"a": RISE + " publish as rises", "b": "from rises a next rises b", "f": FILTER})
    before = numbers(published(index))
    circle = {
        "a": RISE + " publish as rises",
        "b": "from rises a next rises b publish as stock",
        "g": FILTER,
        "v": "select min(price) from table none",
    }
    with pytest.raises(ApplyError, match="no table"):
        index.apply(circle)
    del circle["v"]
    with pytest.raises(ApplyError, match="closes a cycle"):
        index.apply(circle)
    assert (set(index), index.has_changes) == ({"a", "b", "f"}, False)
    errors: list[SubscriptionError] = []
    difference = index.apply({**circle, "v": "select min("}, on_error=errors.append)
    assert sorted(error.id or "" for error in errors) == ["b", "v"]
    assert (difference.added, difference.removed, difference.unchanged) == (("g",), ("f",), ("a",))
    assert numbers(published(index)) == before
    # What is replaced closes no cycle with what replaces it.
    index.apply({"a": RISE, "b": "from rises a next rises b publish as stock"})
    assert set(index) == {"a", "b"}
    with pytest.raises(ApplyError, match="closes a cycle"):
        index.apply({"a": RISE + " publish as rises", "b": "from rises a next rises b publish as stock"})
    index.apply({"b": "from rises a next rises b"})
    index.subscribe(RISE + " publish as rises", id="a")


def test_generations_with_the_same_sequences_share_them(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.subscribe(RISE, id="s")
    index.publish()
    index.subscribe(FILTER, id="f")
    index.publish()
    index.subscribe(RISE, id="t")
    index.publish()
    index = SubscriptionIndex(tmp_path / "index")
    index.unsubscribe("f")
    index.publish()
    reader = IndexReader(tmp_path / "index")
    assert reader.stateful(1) is reader.stateful(2)
    assert reader.stateful(3) is reader.stateful(4) is not reader.stateful(2)
    assert len({one.digest for n in (1, 2, 3, 4) if (one := reader.stateful(n))}) == 2
    assert len(list((tmp_path / "index/stateful").iterdir())) == 2
    for path in (tmp_path / "index").rglob("*"):
        os.utime(path, (time.time() - 86_400,) * 2)
    gone = index.vacuum()
    assert [path.partition("/")[0] for path in gone if path.startswith("stateful")] == ["stateful"]
    assert numbers(IndexReader(tmp_path / "index").stateful(4)) == {"s": (0, 1), "t": (1, 3)}


def test_filters_on_published_streams_are_linked(tmp_path: Path) -> None:
    index = new_index(tmp_path, shards=3)
    index.subscribe("select b.price as p from rises where b.price > 3 and (x = 1 or y = 'a')", id="early")
    index.subscribe("from other where b.price > 3", id="other")
    index.subscribe_many("from rises where b.price > :p", {"p": [1, 2]}, id="r{p}", valid_until=9)
    index.subscribe("price > 3", id="any")
    index.subscribe("from rises where a = 1 and a = 2", id="never")
    index.publish()
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe(RISE + " publish as rises", id="s")
    found = published(index)
    assert linked(found).keys() == {"early", "r1", "r2"}
    engine = Engine(clock=ManualClock(0))
    fill_engine(engine, found)
    event = {"b": {"price": 4}, "y": "a"}
    notes = {note.subscription: note.values for note in engine.publish(event, stream="rises", time=3)}
    assert notes.keys() == {"early", "r1", "r2"}
    assert notes["early"] == {"p": 4}
    assert {note.subscription for note in engine.publish(event, stream="rises", time=9)} == {"early"}
    index.subscribe("from rises where b.price > 5", id="late")
    index.subscribe_many("from rises where b.price > :p", {"p": [7]}, id="r{p}")
    index.subscribe("from other where b.price > 5", id="early", replace=True)
    index.unsubscribe("r2")
    found = published(index)
    assert linked(found).keys() == {"r1", "late", "r7"}
    taken = [number for run in found.linked_filters for number, *_ in run][1:]
    assert {one.id for run in found.take(taken).linked_filters for one in run} == {"late", "r7"}
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("from others a next others b publish as other", id="t")
    index.apply_many(RISES, {"s": ["A"], "p": [1]}, id="{s}")
    index.subscribe("from others a next others b publish as other", id="t")
    index.subscribe("from other where b.price > 5", id="o")
    assert linked(published(index)).keys() == {"o"}


def test_added_filters_of_a_generation_are_found(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index", shards=3)
    rows = {"s": [f"S{n % 40}" for n in range(900)], "p": list(range(900))}
    index.subscribe_many("symbol = :s and price > :p", rows, id="r{row}")
    index.subscribe("price > 3", id="kept")
    index.subscribe("symbol = 'S1'", id="changed")
    index.publish()
    index.subscribe("symbol = 'S2'", id="new")
    index.subscribe("symbol = 'S3'", id="changed", replace=True)
    index.subscribe("price > 3", id="kept", replace=True, valid_until=10**9)
    index.unsubscribe("r5")
    index.publish()
    reader = IndexReader(tmp_path / "index")

    def added(older: int, newer: int) -> set[str]:
        found = reader.added_filters(older, newer)
        return {
            id_ for shard, some in found.items() for id_ in reader.shard(newer, shard).ids(some).to_pylist()
        }

    assert added(1, 2) == {"new", "changed", "kept"}
    assert added(2, 1) == {"changed", "kept", "r5"}
    assert added(2, 2) == set()


def test_readers_see_whole_generations_while_an_index_changes(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.subscribe(RISE, id="s0")
    index.publish()
    seen: list[tuple[int, frozenset[str]]] = []
    ended = False

    def read() -> None:
        reader = IndexReader(tmp_path / "index")
        while not ended:
            reader.renew()
            number = reader.current()
            seen.append((number, frozenset(numbers(reader.stateful(number)))))

    threads = [Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(1, 9):
        index.subscribe(RISE if number % 2 else FILTER, id=f"s{number}")
        index.publish()
    until = time.monotonic() + 60
    while not any(number == 9 for number, _ in seen[-2:]) and time.monotonic() < until:
        time.sleep(0.01)
    ended = True
    for thread in threads:
        thread.join()
    expected = {n: {"s0"} | {f"s{k}" for k in range(1, n) if k % 2} for n in range(1, 10)}
    assert {n for n, ids in seen if ids != expected[n]} == set()
    assert 9 in {n for n, _ in seen}


def test_expired_subscriptions_go_with_a_publication(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.subscribe(RISE, id="s", valid_until=100)
    index.subscribe(RISE, id="t")
    index.subscribe_many(RISES, {"s": ["A"], "p": [1]}, id="{s}", valid_until=100)
    assert set(numbers(published(index))) == {"s", "t", "A"}
    index = SubscriptionIndex(tmp_path / "index")
    assert index.publish(lateness=0) == 2
    assert list(index) == ["t"]
    assert set(numbers(IndexReader(tmp_path / "index").stateful(2))) == {"t"}


@pytest.mark.parametrize("damage", ["cut", "foreign", "newer", "numbers", "gone"])
def test_damaged_sequences_are_refused_by_name(tmp_path: Path, damage: str) -> None:
    from tocsin.structures.archive import ArchiveReader, write_archive  # noqa: PLC0415

    index = new_index(tmp_path)
    index.subscribe_many(RISES, {"s": [f"S{n}" for n in range(99)], "p": list(range(99))}, id="{s}")
    index.publish()
    (file,) = (tmp_path / "index/stateful").rglob("*.zip")
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-50])
    elif damage == "gone":
        file.unlink()
    else:
        with ArchiveReader(file) as archive:
            about = archive.about
            names = {"foreign": ("saved", "soup"), "newer": ("format", 99)}
            name, value = names.get(damage, ("runs", [{**about["runs"][0], "numbers": {"from": 0, "to": 5}}]))
            members: Mapping[str, Any] = {
                name: archive.bytes(name) for name in archive._archive.namelist() if name != "about.json"
            }
            about[name] = value
        write_archive(file, about, members)
    with pytest.raises(SavedIndexError, match="sequences and views") as refused:
        IndexReader(tmp_path / "index").stateful(1)
    assert str(tmp_path) in str(refused.value)
    with pytest.raises(SavedIndexError, match="sequences and views"):
        SubscriptionIndex(tmp_path / "index")


def test_a_change_of_sequences_that_broke_off_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = new_index(tmp_path)
    index.subscribe(RISE, id="s")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(HeldSubscriptions, "_set", interrupt)
        with pytest.raises(KeyboardInterrupt):
            index.subscribe(RISE, id="t")
    with pytest.raises(SavedIndexError, match="open the index again"):
        index.publish()


_QUERIES = [
    FILTER,
    "from rises where b.price > 3",
    BEST,
    "select count(*) from table stock where risk > 3",
    RISE,
    RISE + " publish as rises",
    RISE + " within 5 ticks",
    "from rises a next stock b on b.symbol = a.b.symbol",
]
_sets = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(_QUERIES), max_size=6)


@settings(max_examples=40)
@given(steps=st.lists(st.tuples(_sets, st.booleans(), st.booleans()), min_size=1, max_size=5))
def test_any_sets_one_after_another(steps: list[tuple[dict[str, str], bool, bool]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        index = new_index(folder, shards=2)
        known: dict[str, tuple[str, int, int]] = {}  # text, number, generation
        used: set[int] = set()
        present: dict[str, str] = {}
        touched: set[str] = set()  # since the last generation
        for texts, is_reopened, is_published in steps:
            difference = index.apply(texts)
            changed = {id_ for id_ in {*texts, *present} if texts.get(id_) != present.get(id_)}
            assert {*difference.added, *difference.changed, *difference.removed} == changed
            present, touched = texts, touched | changed
            assert {*difference.added, *difference.changed, *difference.unchanged} == set(texts)
            assert set(index) == set(texts)
            if not is_published:
                continue
            number = index.publish()
            reader = IndexReader(folder / "index")
            stateful = reader.stateful(number)
            found = {one.id: one for one in stateful.subscriptions()} if stateful else {}
            expected = {id_: text for id_, text in texts.items() if _QUERIES.index(text) > 1}
            assert {id_: one.text for id_, one in found.items()} == expected
            for id_, one in found.items():
                if id_ not in touched:
                    assert known[id_] == (one.text, one.number, one.added)
                else:
                    assert one.added == number
                    assert one.number not in used
                used.add(one.number)
            touched = set()
            known = {id_: (one.text, one.number, one.added) for id_, one in found.items()}
            is_linking = any("publish" in text for text in texts.values())
            wanted = {id_ for id_, text in texts.items() if text == _QUERIES[1] and is_linking}
            assert (set(linked(stateful)) if stateful else set()) == wanted
            if stateful is not None:
                fill_engine(Engine(), stateful)
            filters = found_by(reader, number, [{"price": 4}, {"b.price": 4, "$stream": "rises"}])
            assert filters[0] == {id_ for id_, text in texts.items() if text == FILTER}
            assert filters[1] == {id_ for id_, text in texts.items() if text == _QUERIES[1]}
            if is_reopened:
                index = SubscriptionIndex(folder / "index")
