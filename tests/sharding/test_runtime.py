"""One shard: late events, kept events, generations, states."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.sharding.shards import Shards
from tests.sharding.test_router import rows_of
from tocsin import parse
from tocsin.index import IndexReader, StatefulSubscriptions, SubscriptionIndex
from tocsin.matching.batches import EventBatch
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Subscription
from tocsin.model.errors import EventError, SavedError, TocsinError
from tocsin.sharding import (
    AddedInIndex,
    FilterMatch,
    ShardPlan,
    ShardRouter,
    ShardRuntime,
    reshard,
    stateful_subscriptions,
)
from tocsin.sharding.output import ShardOutput
from tocsin.structures.archive import Parts, pack
from tocsin.structures.array_types import Int64s

PAIR = "from s a next s b on b.k = a.k"


def subscriptions(texts: dict[str, str], **options: object) -> StatefulSubscriptions:
    return stateful_subscriptions([Subscription(id_, parse(text)) for id_, text in texts.items()], **options)  # type: ignore[arg-type]


def event(end: int, k: object = 1, stream: str = "s", until: int | None = None, **more: object) -> Event:
    return Event(f"e{end}", {"k": k, **more}, stream, end, end, until)  # type: ignore[dict-item]


class Shard:
    """One shard that has everything."""

    def __init__(self, stateful: StatefulSubscriptions, **options: object) -> None:
        self.plan = ShardPlan.of(stateful, 1)
        self.runtime = ShardRuntime(stateful, self.plan, 0, 1, **options)  # type: ignore[arg-type]

    def process(self, *events: Event) -> ShardOutput:
        routed = ShardRouter(self.plan).route(TimedBatch(list(events)))
        given = TimedBatch([events[row] for row in routed.rows.tolist()])
        return self.runtime.process(given, routed.roles, routed.latest)


def lines(output: ShardOutput, *names: str) -> list[tuple[object, ...]]:
    return [tuple(line[name] for name in names) for line in output.notifications.to_pylist()]


def test_a_notification_names_its_events_and_the_one_that_caused_it() -> None:
    text = "from s a next s b on b.k = a.k select b.x as x publish as p"
    shard = Shard(subscriptions({"q": text, "f": "from p where x > 0"}))
    assert not lines(shard.process(event(1, x=0)), "subscription")
    output = shard.process(event(2, k=7), event(3, x=4))
    found = lines(
        output, "subscription", "event_id", "event_ids", "start", "end", "generation", "values", "row"
    )
    assert found == [
        ("q", "e3", ["e1", "e3"], 1, 3, 1, '{"x":4}', 1),
        ("f", "e3", ["p(e1,e3)"], 1, 3, 1, None, 1),
    ]


def test_time_that_passes_elsewhere_releases_what_waits() -> None:
    shard = Shard(subscriptions({"q": PAIR}), out_of_orderness=10)
    assert not lines(shard.process(event(1), event(3)), "subscription")
    nothing = TimedBatch([]), np.empty(0, dtype=np.int64)
    assert not lines(shard.runtime.process(*nothing, {1: 12}), "subscription")
    output = shard.runtime.process(*nothing, {1: 13})
    assert lines(output, "event_ids", "row") == [(["e1", "e3"], None)]


def test_an_event_is_late_by_the_time_of_all_shards_and_reported_once() -> None:
    texts = {"q": PAIR} | {f"home{i}": "from s a next s b on b.x > a.x" for i in range(9)}
    shards = Shards(subscriptions(texts), 4, out_of_orderness=5)
    shards.process([event(20)])
    assert not shards.process([event(15, k=1)])
    assert [key[:2] for key in shards.process([event(14), event(30)])] == [("q", ("e15", "e20"))]
    assert shards.late == ["e14"]


def test_events_must_be_in_order() -> None:
    shard = Shard(subscriptions({"q": PAIR}))
    with pytest.raises(EventError, match="in the order of their end"):
        shard.process(event(2), event(1))


def test_streams_with_ticks_of_their_own_have_a_watermark_of_their_own() -> None:
    stateful = subscriptions(
        {"q": PAIR, "m": "from m a next m b on b.k = a.k within 2 minutes"}, ticks={"m": 60_000_000}
    )
    shards = Shards(stateful, 3)
    shards.process([event(1_000), event(5, stream="m")])
    found = shards.process([event(6, stream="m"), event(1_001)])
    assert sorted(key[0] for key in found) == ["m", "q"]
    assert not shards.late


def test_views_tell_their_present_answer_when_they_come() -> None:
    first = subscriptions({"count": "select count(*) from table s"}, tables={"s": "k"})
    shards = Shards(first, 3)
    shards.process([event(1), event(2, k=2)])
    shards.follow(
        subscriptions(
            {"count": "select count(*) from table s", "max": "select max(k) from table s"}, tables={"s": "k"}
        ),
        2,
    )
    assert list(shards.process([])) == [("max", (), None, None, None, None, "2")]


def test_a_subscription_that_is_replaced_begins_anew() -> None:
    longer = "from s a next s b on b.k = a.k next s c on c.k = a.k"
    for restarts in (False, True):
        shards = Shards(subscriptions({"q": longer, "r": longer}, numbers={"q": 0, "r": 1}), 2)
        shards.process([event(1), event(2)])
        changed = subscriptions({"q": f"{longer} where c.x > 0", "r": longer}, numbers={"q": 2, "r": 1})
        shards.restart(changed, 2) if restarts else shards.follow(changed, 2)
        found = shards.process([event(3, x=1), event(4, x=1), event(5, x=1)])
        assert sorted(key[:2] for key in found) == [
            ("q", ("e3", "e4", "e5")),
            ("r", ("e1", "e2", "e3")),
            ("r", ("e2", "e3", "e4")),
            ("r", ("e3", "e4", "e5")),
        ]


def test_what_is_newly_linked_moves_and_begins_anew() -> None:
    shards = Shards(subscriptions({"q": PAIR}), 4)
    shards.process([event(1)])
    shards.follow(
        subscriptions({"q": PAIR, "p": "from t a next t b on b.k = a.k select b.k as k publish as s"}), 2
    )
    assert not shards.process([event(2)])
    assert [key[:2] for key in shards.process([event(3)])] == [("q", ("e2", "e3"))]


class Everything:
    """A filter that all events satisfy."""

    def match(self, events: EventBatch, ends: Int64s) -> Iterator[FilterMatch]:  # noqa: ARG002
        return (FilterMatch(row, "all", None) for row in range(len(ends)))


def test_a_kept_event_meets_later_filters_once_until_its_time_is_over() -> None:
    for grown in (1, 4):
        shards = Shards(subscriptions({"q": PAIR}), 2)
        shards.process([event(1, until=10), event(2, stream="u", until=5), event(3)])
        shards.restart()
        shards.grow(2 * grown)

        def meet(shards: Shards = shards) -> list[str]:
            for runtime in shards.runtimes:
                runtime.meet(Everything())
            return sorted(ids[0] for _, ids, *_ in shards.process([]))

        assert meet() == ["e1", "e2"]
        shards.process([event(5)])
        assert meet() == ["e1"]
        shards.process([event(10, stream="other")])
        assert meet() == []


def test_filters_that_come_into_an_index_meet_kept_events(tmp_path) -> None:  # type: ignore[no-untyped-def]
    index = SubscriptionIndex(tmp_path / "index", shards=2)
    index.subscribe("k = 1", id="old")
    index.publish()
    index.subscribe("select x from s where k = 1", id="new")
    index.subscribe("k = 2", id="other")
    index.publish()
    shards = Shards(subscriptions({"q": PAIR}), 3)
    shards.process([event(1, x=5, until=9), event(2, k=3, until=9)])
    reader = IndexReader(tmp_path / "index")
    reader.renew()
    for runtime in shards.runtimes:
        runtime.meet(AddedInIndex(reader, 1, 2))
    assert list(shards.process([])) == [("new", ("e1",), 1, 1, '{"x": 5}', None, None)]


def test_rows_of_a_table_are_processed_as_events_are() -> None:
    events = [Event(f"e{i}", {"g": i % 2, "x": float(i % 3), "w": "a"}, "s", i, i) for i in range(12)]
    stateful = subscriptions(
        {"q": "from s a next s b on b.g = a.g where b.x > a.x", "r": "from s a next s b where b.x = 1"}
    )
    plan = ShardPlan.of(stateful, 1)
    found = []
    for batch in (rows_of(events), TimedBatch(events)):
        routed = ShardRouter(plan).route(batch)
        runtime = ShardRuntime(stateful, plan, 0, 1, out_of_orderness=3)
        parts = [runtime.process(batch, routed.roles, routed.latest), runtime.finish()]
        found.append([line for part in parts for line in part.notifications.to_pylist()])
    assert found[0] == found[1]
    assert len(found[0]) > 5


def test_states_that_are_damaged_or_of_others_are_refused() -> None:
    stateful = subscriptions({"q": PAIR})
    shards = Shards(stateful, 2, out_of_orderness=9)
    shards.process([event(1), event(2, until=9)])
    states = [runtime.snapshot() for runtime in shards.runtimes]

    def begin(state: bytes, shard: int = 0) -> None:
        ShardRuntime(stateful, shards.plan, shard, 1, state=state)

    begin(states[0])
    with pytest.raises(SavedError, match="damaged"):
        begin(states[0][:-70] + bytes(70))
    with pytest.raises(SavedError, match="shard 0 of 2, not of 1 of 2"):
        begin(states[0], shard=1)
    with pytest.raises(SavedError, match="no state of a shard"):
        begin(pack(Parts({"saved": "something"}, {})))
    with pytest.raises(SavedError, match="format 99"):
        begin(pack(Parts({"saved": "tocsin shard", "format": 99}, {})))
    with pytest.raises(TocsinError, match="a multiple of their number, not to 3"):
        reshard(states, 3)
    with pytest.raises(SavedError, match="shard 1 of 2, not of 0 of 2"):
        reshard(states[::-1], 4)


def test_no_notification_is_lost_by_a_snapshot() -> None:
    first = subscriptions({"count": "select count(*) from table s"}, tables={"s": "k"})
    shard = Shard(first)
    with pytest.raises(SavedError, match="no call of `process` has returned yet"):
        shard.runtime.snapshot()
    shard.process()
    shard.runtime.snapshot()


def test_a_plan_says_what_is_where() -> None:
    texts = {
        "keyed": PAIR,
        "fixed": "from s a where a.k = 1 next s b on b.k = 1",
        "home": "from s a next s b",
    }
    texts |= {
        "p": "from s a next s b on b.k = a.k publish as rises",
        "f": "from rises",
        "v": "select count(*) from table t",
    }
    text = ShardPlan.of(subscriptions(texts, tables={"t": "k"}), 3).describe()
    assert "6 subscriptions on 3 shards." in text
    assert "2 sequences are keyed by s: k." in text
    assert "1 are on all shards" in text
    assert "1: it publishes as `rises` (`p`)" in text
    assert "(`home`)" in text
    assert "The rows of table `t` go to every shard." in text
    with pytest.raises(TocsinError, match="one shard or more"):
        ShardPlan.of(subscriptions({}), 0)


SAVED = Path(__file__).parent / "saved" / "shard-1.state"
SAVED_SET = {
    "keyed": "from s a next s b on b.k = a.k where b.x > a.x within 100 select b.x as x",
    "free": "from s a next s b where b.x > 10 * a.x",
    "view": "select max(x) from table rows",
}


def saved_shard(state: bytes | None = None) -> Shard:
    """Return a shard with all kinds of state, or the events that led to the kept one if there is no state."""
    stateful = subscriptions(SAVED_SET, tables={"rows": "k"})
    shard = Shard(stateful, out_of_orderness=5, state=state)
    if state is None:
        shard.process(event(1, x=1), event(2, k="ö", x=2.5), event(3, stream="rows", x=7))
        shard.process(event(9, x=3), event(12, k="ö", x=4, until=1_000))
    return shard


def go_on(shard: Shard) -> list[str]:
    output = shard.process(event(13, k="ö", x=90), event(14, k=2, stream="rows", x=11), event(30, x=5))
    return sorted(
        map(repr, lines(output, "subscription", "event_id", "event_ids", "start", "values", "old", "new"))
    )


def test_a_state_of_the_first_format_goes_on() -> None:
    # The file was written by `SAVED.write_bytes(saved_shard().runtime.snapshot())` when the format was new.
    kept = go_on(saved_shard(SAVED.read_bytes()))
    assert kept == go_on(saved_shard())
    assert len(kept) > 4
