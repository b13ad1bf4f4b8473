"""Events that are kept meet the filters of later generations once, as in the engine; a stream that is restarted still has them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tocsin import Engine
from tocsin.engine import EventClock
from tocsin.index import SubscriptionIndex
from tocsin.spark import Pipeline

COLUMNS = "event_id string, at long, until long, price double, room string"
FILES: list[list[tuple[Any, ...]]] = [
    [("e1", 1, 100, 5.0, "a"), ("e2", 2, 4, 6.0, "b"), ("e3", 3, None, 7.0, "a")],
    [("e4", 10, 50, 8.0, "b"), ("e5", 11, 12, 9.0, "a")],
    [("e6", 60, 90, 5.5, "a")],
    [("e7", 95, None, 1.0, "b")],
]
GENERATIONS = [
    {"a": "room = 'a'"},
    {"a": "room = 'a'", "cheap": "price < 7"},  # meets e1 and e2, which no event has ended after yet
    {"cheap": "price < 7", "rooms": "room in ('a', 'b')"},  # meets e1, e4 and e5, no more e2
    {"cheap": "price < 6", "rooms": "room in ('a', 'b')"},  # another query: meets e1 and e6
]


def test_kept_events_meet_later_filters_once(any_spark: SparkSession, tmp_path: Path) -> None:
    index, engine = SubscriptionIndex(tmp_path / "index"), Engine(clock=EventClock())
    wanted: Counter[tuple[str, str]] = Counter()
    texts: dict[str, str] = {}
    (tmp_path / "events").mkdir()
    for number, (rows, asked) in enumerate(zip(FILES, GENERATIONS, strict=True)):
        index.apply(asked)
        index.publish()
        any_spark.createDataFrame(rows, COLUMNS).coalesce(1).write.parquet(str(tmp_path / f"draft{number}"))
        (file,) = (tmp_path / f"draft{number}").glob("*.parquet")
        file.rename(tmp_path / "events" / f"{number}.parquet")
        source = any_spark.readStream.schema(COLUMNS).parquet(str(tmp_path / "events"))
        pipeline = Pipeline(
            source,
            tmp_path / "index",
            tmp_path / "notes",
            tmp_path / "checkpoint",
            time="at",
            valid_until="until",
            state_shards=2,
        )
        pipeline.run(available_now=True)
        for id_ in [id_ for id_, text in texts.items() if asked.get(id_) != text]:
            engine.unsubscribe(id_)
        met = [engine.subscribe(text, id=id_) for id_, text in asked.items() if texts.get(id_) != text]
        texts = asked
        notes = [note for one in met for note in one.notifications]
        for id_, at, until, price, room in rows:
            notes += engine.publish({"price": price, "room": room}, time=at, id=id_, valid_until=until)
        wanted.update((note.subscription, note.event_ids[0]) for note in notes)
    found = any_spark.read.parquet(str(tmp_path / "notes")).collect()
    assert Counter((note.subscription, note.event_id) for note in found) == wanted
    assert wanted == {
        **{("a", id_): 1 for id_ in ("e1", "e3", "e5")},
        **{("cheap", id_): count for id_, count in (("e1", 2), ("e2", 1), ("e6", 2), ("e7", 1))},
        **{("rooms", id_): 1 for id_ in ("e1", "e4", "e5", "e6", "e7")},
    }
