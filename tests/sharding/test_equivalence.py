"""All shards together give the notifications of one engine."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sequences.strategies import sequences, streams
from tests.sharding.shards import Beside, Shards
from tocsin import parse
from tocsin.language import to_text
from tocsin.model import Event, Query, Subscription
from tocsin.sharding import stateful_subscriptions

TABLES = {"t": "g", "p": "g"}
KEYED = [
    "from s a next s b on b.g = a.g where b.x > a.x",
    "from s a where a.g = 1 next s b on b.g = 1 and b.x >= a.x",
    "from s a next t b on b.x = a.g next s c on c.g = b.x",
    "from s a fold s b on b.g = last.g while b.x >= last.x compute n = count(*)",
    "from s a next s b on b.g = a.g and b.y = a.y within 5 ticks",
    "from s a next s b on b.y = a.y select a.x as x, b.y as y",
    "from s a where a.y = 2 next s b on b.y = 2 fold t c on c.y = b.y while c.x > 0",
]
HOME = [
    "from s a next s b where b.g = a.g",
    "from s a where a.x > 1 next s b on b.x > a.x next t c on c.g = 1",
    "from s a next s b on b.x = a.g",
    "from s a next s b on b.g = a.g select b.g as g, b.x as x publish as p",
    "from t a where a.x = 0 next s b on b.g = a.g select b.g as g publish as p",
    "from p a next s b on b.g = a.g",
    "from (from s a next s b on b.g = a.g select b.g as g) r next t c on c.g = r.g",
]
FILTERS = ["from p where g = 1", "from p where x > 0", "select x from p where g = 0"]
VIEWS = [
    "select max(x) from table t where x between 0 and 2",
    "select count(*) from table t",
    "select distinct x from table t where g = 1",
    "select t.x, u.x as y from table t t join table p u on t.g = u.g",
    "select min(x) from table p",
]

queries: st.SearchStrategy[Query] = st.one_of(
    st.sampled_from([*KEYED, *HOME, *FILTERS, *VIEWS]).map(parse),
    sequences(),
    sequences(publish="p"),
)


# Where events come out of order, it depends on the micro-batches when rows are published among the others of a table.
ordinary: st.SearchStrategy[Query] = st.one_of(
    st.sampled_from([*KEYED, *HOME, *FILTERS, *VIEWS[:3]]).map(parse), sequences(), sequences(publish="p")
)


@st.composite
def subscription_sets(draw: st.DrawFn, of: st.SearchStrategy[Query] = queries) -> list[Subscription]:
    found = draw(st.lists(of, min_size=1, max_size=6))
    return [Subscription(f"q{number}", query) for number, query in enumerate(found)]


def cut(events: list[Event], sizes: list[int]) -> list[list[Event]]:
    batches, begin = [], 0
    for size in sizes:
        batches.append(events[begin : begin + size])
        begin += size
    return [*batches, events[begin:]]


batch_sizes = st.lists(st.integers(0, 5), max_size=4)


@settings(max_examples=settings().max_examples // 4)
@given(subscription_sets(), streams(), batch_sizes, st.integers(1, 5), st.randoms(use_true_random=False))
def test_shards_give_the_notifications_of_the_engine(
    given_set: list[Subscription], events: list[Event], sizes: list[int], shards: int, random: Random
) -> None:
    sharded = Shards(stateful_subscriptions(given_set, tables=TABLES), shards)
    beside = Beside(given_set, TABLES)
    for batch in cut(events, sizes):
        random.shuffle(batch)
        assert sharded.process(batch) == beside.process(batch)


def out_of_order(events: list[Event], by: int, random: Random) -> list[Event]:
    """Return events in another order, in which none ends more than so much before an earlier one."""
    return sorted(events, key=lambda event: event.end + random.randint(0, by))


@settings(max_examples=settings().max_examples // 4)
@given(
    subscription_sets(ordinary),
    streams(max_size=16),
    batch_sizes,
    st.integers(1, 4),
    st.integers(0, 6),
    st.lists(st.integers(0, 2), min_size=5, max_size=5),
    st.randoms(use_true_random=False),
)
def test_shards_go_on_from_snapshots_and_grow(
    given_set: list[Subscription],
    events: list[Event],
    sizes: list[int],
    shards: int,
    out_of_orderness: int,
    steps: list[int],
    random: Random,
) -> None:
    events = out_of_order(events, out_of_orderness, random)
    sharded = Shards(stateful_subscriptions(given_set, tables={"t": "g"}), shards, out_of_orderness)
    beside = Beside(given_set, {"t": "g"}, out_of_orderness=out_of_orderness)
    found, expected = Counter[tuple[object, ...]](), Counter[tuple[object, ...]]()
    for batch, step in zip(cut(events, sizes), steps, strict=False):
        found += sharded.process(batch)
        expected += beside.process(batch)
        if step == 1:
            sharded.restart()
        elif step == 2 and sharded.count < 6:
            sharded.grow(2 * sharded.count)
    assert found + sharded.finish() == expected + beside.finish()


# Changes that move no subscription to another shard: what becomes or is no more linked begins anew, which has a test below.
stable: st.SearchStrategy[Query] = st.one_of(
    st.sampled_from([*KEYED, *HOME[:3], HOME[-1], *VIEWS[:3]]).map(parse), sequences()
)


@settings(max_examples=settings().max_examples // 4)
@given(
    streams(max_size=16),
    batch_sizes,
    st.integers(1, 4),
    st.integers(0, 4),
    st.data(),
    st.randoms(use_true_random=False),
)
def test_shards_follow_generations_as_the_engine_follows_changes(
    events: list[Event],
    sizes: list[int],
    shards: int,
    out_of_orderness: int,
    data: st.DataObject,
    random: Random,
) -> None:
    events = out_of_order(events, out_of_orderness, random)
    present: dict[str, Subscription] = {}
    numbers: dict[str, int] = {}
    sharded = Shards(stateful_subscriptions((), tables={"t": "g"}), shards, out_of_orderness)
    beside = Beside((), {"t": "g"}, out_of_orderness=out_of_orderness)
    found, expected = Counter[tuple[object, ...]](), Counter[tuple[object, ...]]()
    for generation, batch in enumerate(cut(events, sizes), 1):
        changes = data.draw(st.dictionaries(st.sampled_from("abcde"), st.one_of(st.none(), stable, stable)))
        for id_, query in changes.items():
            if query is None:
                if present.pop(id_, None) is not None:
                    beside.engine.unsubscribe(id_)
            elif id_ not in present or to_text(present[id_].query) != to_text(query):
                present[id_] = Subscription(id_, query)
                numbers[id_] = len(numbers) + 100 * generation
                beside.add(present[id_])
        stateful = stateful_subscriptions(present.values(), tables={"t": "g"}, numbers=numbers)
        if data.draw(st.booleans()) and generation > 1:
            sharded.restart(stateful, generation)
        else:
            sharded.follow(stateful, generation)
        found += sharded.process(batch)
        expected += beside.process(batch)
    assert found + sharded.finish() == expected + beside.finish()
