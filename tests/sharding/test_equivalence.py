"""All shards together give the notifications of one engine."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sequences.strategies import sequences, streams
from tests.sharding.shards import Beside, Shards
from tocsin import parse
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


@st.composite
def subscription_sets(draw: st.DrawFn, *, most: int = 6) -> list[Subscription]:
    found = draw(st.lists(queries, min_size=1, max_size=most))
    return [Subscription(f"q{number}", query) for number, query in enumerate(found)]


def cut(events: list[Event], sizes: list[int]) -> list[list[Event]]:
    batches, begin = [], 0
    for size in sizes:
        batches.append(events[begin : begin + size])
        begin += size
    return [*batches, events[begin:]]


@settings(deadline=None)
@given(
    subscription_sets(),
    streams(),
    st.lists(st.integers(0, 5), max_size=4),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
def test_shards_give_the_notifications_of_the_engine(given_set, events, sizes, shards, random):  # type: ignore[no-untyped-def]
    sharded = Shards(stateful_subscriptions(given_set, tables=TABLES), shards)
    beside = Beside(given_set, TABLES)
    for batch in cut(events, sizes):
        random.shuffle(batch)
        assert sharded.process(batch) == beside.process(batch)
