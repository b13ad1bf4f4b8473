"""The two stages of a stream give the engine's notifications, whatever micro-batches, workers and generations there are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sequences.strategies import sequences, streams
from tests.sharding.shards import Told, told
from tests.sharding.test_equivalence import HOME, KEYED, VIEWS, batch_sizes, cut, out_of_order
from tests.spark.stateful.simulated import Stream, plain
from tocsin import Engine, parse
from tocsin.engine import EventClock
from tocsin.errors import EventError
from tocsin.index import SubscriptionIndex
from tocsin.language import to_text
from tocsin.model import Event, Query

FILTERS = ["g = 1", "from s where x > 1", "select x, y from t where x >= 0", "w is missing"]
# Changes of these move no subscription to another shard.
queries: st.SearchStrategy[Query] = st.one_of(
    st.sampled_from([*KEYED, *HOME[:3], HOME[-1], *VIEWS[:3], *FILTERS]).map(parse), sequences()
)
changes_of_subscriptions = st.dictionaries(st.sampled_from("abcde"), st.one_of(st.none(), queries, queries))


class Beside:
    """One engine with the same subscriptions, given the events of each micro-batch in the order of their end."""

    def __init__(self, out_of_orderness: int) -> None:
        self.late: list[str] = []
        self.engine = Engine(
            clock=EventClock(),
            out_of_orderness=out_of_orderness,
            lateness=10**15,
            on_late=lambda event: self.late.append(event.id),
        )
        self.engine.table("t", key="g")
        self.found: Told = Counter()
        self.refused: list[str] = []

    def change(self, id_: str, query: Query | None) -> None:
        if query is None:
            self.engine.unsubscribe(id_)
        else:
            self.found += told(self.engine.subscribe(query, id=id_, replace=True).notifications)

    def process(self, events: list[Event]) -> None:
        for event in sorted(events, key=lambda one: one.end):
            try:
                self.found += told(self.engine.publish(event))
            except EventError:  # it is no row of its table
                self.refused.append(event.id)


@settings(max_examples=settings().max_examples // 4)
@given(
    streams(max_size=16),
    batch_sizes,
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(0, 3),
    st.data(),
    st.randoms(use_true_random=False),
)
def test_a_stream_gives_the_notifications_of_the_engine(
    given_events: list[Event],
    sizes: list[int],
    shards: int,
    index_shards: int,
    out_of_orderness: int,
    data: st.DataObject,
    random: Random,
) -> None:
    until = [data.draw(st.sampled_from([None, None, None, 2, 5])) for _ in given_events]
    events = [
        plain(one, None if length is None else one.end + length)
        for one, length in zip(given_events, until, strict=True)
    ]
    events = out_of_order(events, out_of_orderness, random)
    with TemporaryDirectory() as folder:
        index = SubscriptionIndex(Path(folder) / "index", shards=index_shards)
        index.table("t", key="g")
        stream = Stream(index, shards, random, out_of_orderness)
        beside = Beside(out_of_orderness)
        # A generation without sequences and views does not know the tables, and so no row that lacks its key.
        present: dict[str, Query] = {"always": parse("select count(*) from table t")}
        beside.change("always", present["always"])
        found: Told = Counter()
        for batch in cut(events, sizes):
            changes = data.draw(st.one_of(st.just({}), changes_of_subscriptions))
            for id_, query in changes.items():
                if query is None:
                    if present.pop(id_, None) is not None:
                        beside.change(id_, None)
                elif id_ not in present or to_text(present[id_]) != to_text(query):
                    present[id_] = query
                    beside.change(id_, query)
            index.apply(present)
            index.publish()
            found += stream.process(batch)
            beside.process(batch)
        assert found == beside.found
        assert sorted(stream.late) == sorted(beside.late)
        assert sorted(stream.refused) == sorted(beside.refused)
