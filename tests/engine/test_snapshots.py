"""An engine that is saved and opened, or whose state is restored in another one, between any two calls notifies as if nothing had been.

A random script runs on three engines: one that is never interrupted, one that is saved to a file and opened before each
call, and one whose state is restored in a new engine, with the subscriptions of that moment, before each call.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from tocsin import Engine, parse
from tocsin.engine import EventClock
from tocsin.engine.saving import Restored
from tocsin.model import Event, Notification, Subscription
from tocsin.model.errors import SavedError, TocsinError
from tocsin.structures.archive import Parts, pack, unpack

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"

FILTERS = [
    "x > 1",
    "select x + 1 as y from s where k = 1",
    "select * from rises",
    "select k from jumps where x > 0",
    "select * from t where z is missing",
]
SEQUENCES = [
    "from s a next s b on b.k = a.k where b.x > a.x",
    "from s a next s b where b.x > a.x within 4 ticks",
    "from s a next s b on b.k = a.k where b.x >= a.x select a.k as k, b.x as x publish as jumps",
    "from s a fold s b on b.k = a.k while b.x >= b.last.x compute n = count(*), total = sum(b.x) next s c on c.k = a.k",
    "from s a next t b on b.k = a.k publish as rises",
    "from q a next q b where b.z != a.z within 5 seconds",
    "from rises a next s b where b.x = 0",
    "from s a where x = 3 compute first = x next s b where b.x < first",
]
VIEWS = [
    "select min(x) from table t where z between 0 and 2",
    "select max(z) from table t where x >= 1",
    "select sum(x) from table t",
    "select avg(x) from table t where z = 1 or x = 2",
    "select distinct z from table t where x < 3",
    "select distinct x from table t where z != 'one'",
    "select k, x from table t where z = 'one' or x > 1",
    "select l.k, r.x as other from table t l join table jumps r on l.k = r.k where l.x <= r.x",
    "select l.k from table t l join table t r on l.z = r.x where l.x < 3",
    "select count(*) from table jumps where x > 1",
]
TEMPLATES: list[tuple[str, dict[str, list[Any]]]] = [
    ("x > :a and k = :b", {"a": [0, 1, 2], "b": [0, 1, 1]}),
    ("from s a next s b on b.k = a.k where b.x > a.x + :d within :w", {"d": [0, 1, 0], "w": [3, 9, 30]}),
    ("from s a where k = :k next s b where b.x > :d", {"d": [0, 1, 2], "k": [0, 1, 2]}),
    ("select max(x) from table t where z >= :a", {"a": [0, 1, 2]}),
    ("select count(*) from table t where x = :a and z != 2", {"a": [0, 1, 2]}),
]
TEXTS = [*FILTERS, *SEQUENCES, *VIEWS]
ZS = [0, 1, 2, 1.0, "one", "two", True, None]

Action = tuple[Any, ...]
ids = st.sampled_from("abcdefgh")
limits = st.fixed_dictionaries(
    {}, optional={"valid_from": st.integers(-5, 9), "valid_until": st.integers(1, 20)}
)  # from now on
rows = st.fixed_dictionaries(
    {"k": st.integers(0, 2), "x": st.integers(0, 3), "z": st.sampled_from(ZS)},
)
events = st.tuples(
    st.sampled_from(["s", "s", "s", "t", "t", "q", "jumps", None]),
    rows,
    st.integers(-4, 5),  # how much later than the one before
    st.integers(0, 3),  # how long it took
    st.sampled_from([None, None, None, 3, 30]),  # how long it is kept
    st.sampled_from([False] * 5 + [True]),  # whether it deletes
)
actions = st.one_of(
    st.tuples(st.just("subscribe"), ids, st.sampled_from(TEXTS), limits, st.sampled_from([None, "full"])),
    st.tuples(st.just("subscribe"), ids, st.sampled_from([*SEQUENCES, *VIEWS]), st.just({}), st.none()),
    st.tuples(st.just("template"), st.sampled_from(TEMPLATES), limits),
    st.tuples(st.just("remove"), st.integers(0, 99)),
    st.tuples(st.just("apply"), st.dictionaries(ids, st.sampled_from(TEXTS), max_size=3)),
    st.tuples(st.just("publish"), events),
    st.tuples(st.just("many"), st.lists(events, min_size=1, max_size=12)),
    st.tuples(st.just("many"), st.lists(events, min_size=1, max_size=12)),
    st.tuples(st.just("flush")),
)
options = st.fixed_dictionaries(
    {
        "matcher": st.sampled_from([None, "oracle"]),
        "lateness": st.sampled_from([0, 6]),
        "out_of_orderness": st.sampled_from([0, 0, 4]),
    }
)


Call = Callable[[Engine], Iterable[Notification]]


def new_engine(options: dict[str, Any]) -> Engine:
    engine = Engine(clock=EventClock(), **options)
    engine.stream("q", tick="1 second")
    engine.table("t", key="k")
    engine.table("jumps", key=["k"])
    return engine


class Script:
    """Turns random actions into calls, the same ones for each engine."""

    def __init__(self) -> None:
        self.time = self.latest = 10
        self.count = 0

    def call(self, action: Action, engine: Engine) -> Call:
        """Return an action as a call for engines that have the subscriptions of this one."""
        self.count += 1
        match action:
            case ("publish", drawn):
                event = self.event(drawn)
                return lambda one: one.publish(event)
            case ("many", several):
                made = list(map(self.event, several))
                return lambda one: one.publish_many(made).to_list()
            case ("flush",):
                return lambda one: one.flush()
            case ("subscribe", id_, text, drawn, witness):
                limit = self.limit(drawn)
                witness = witness if text in SEQUENCES else None
                wanted = Subscription(id_, parse(text), **limit, witness=witness)
                if (
                    wanted in engine.subscriptions()
                ):  # which would begin anew, but not where its state is restored
                    return lambda _: ()
                options: dict[str, Any] = {**limit, "witness": witness, "owner": "ann", "replace": True}
                return lambda one: one.subscribe(text, id=id_, **options).notifications
            case ("template", (template, columns), drawn):
                limit = self.limit(drawn)
                pattern = f"many{self.count}-{{row}}"
                return lambda one: subscribe_rows(one, template, columns, pattern, limit)
            case ("remove", position):
                present = [one.id for one in engine.subscriptions()]
                gone = present[position % len(present)] if present else None
                return lambda one: remove(one, gone)
            case ("apply", wanted):
                own = {
                    id_: text
                    for id_, text in wanted.items()
                    if id_ not in engine or engine.owner(id_) == "bob"
                }
                return lambda one: one.apply(own, owner="bob").notifications
        raise AssertionError(action)

    def limit(self, drawn: dict[str, int]) -> dict[str, int]:
        return {name: max(self.latest, 0) + value for name, value in drawn.items()}

    def event(self, drawn: Any) -> Event:
        stream, row, step, length, kept, deletes = drawn
        self.time = max(self.time + step, 1)
        self.latest = max(self.latest, self.time)
        self.count += 1
        attributes = {name: value for name, value in row.items() if value is not None}
        if deletes and stream in {"t", "jumps"}:
            attributes["$delete"] = True
        until = None if kept is None else self.time + kept
        return Event(f"e{self.count}", attributes, stream, self.time - length, self.time, until)


def remove(engine: Engine, id_: str | None) -> Iterable[Notification]:
    if id_ is not None:
        engine.unsubscribe(id_)
    return ()


def subscribe_rows(
    engine: Engine, template: str, columns: dict[str, Any], pattern: str, limit: dict[str, Any]
) -> Iterable[Notification]:
    done = engine.subscribe_many(template, columns, id=pattern, owner="cat", **limit)
    assert not done.errors
    return done.notifications or engine._store.first_answers(done.ids)


def opened(engine: Engine) -> Engine:
    """Return the engine as it is opened from its file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "engine"
        assert not engine.save(path).left_out
        return Engine.open(path)


def restored(engine: Engine, like: Engine, options: dict[str, Any], seed: int) -> tuple[Engine, Restored]:
    """Return a new engine with the state of one and the subscriptions of another, which came in another order."""
    fresh = new_engine(options)
    subscriptions = list(like.subscriptions())
    Random(seed).shuffle(subscriptions)  # noqa: S311 - nothing secret
    for one in subscriptions:
        limits: dict[str, Any] = {"valid_from": one.valid_from, "valid_until": one.valid_until}
        fresh.subscribe(one.query, id=one.id, witness=one.witness, owner=like.owner(one.id), **limits)
    return fresh, fresh.restore(engine.snapshot())


def plain(note: Notification, *, with_generation: bool) -> str:
    """Return a notification without what is random: the ids of published events."""
    ids = tuple(id_ if id_.startswith("e") else "" for id_ in note.event_ids)
    events = tuple(changed(event, id=id_) for event, id_ in zip(note.events, ids, strict=False))
    found = changed(note, event_ids=ids, events=events)
    return repr(found if with_generation else changed(found, generation=0))


def counts(engine: Engine) -> tuple[Any, ...]:
    stats = engine.stats()
    return (
        *(stats.subscriptions, stats.published, stats.refused, stats.notifications, stats.expired),
        *(
            stats.kept_events,
            stats.sequences.waiting,
            stats.sequences.late,
            stats.views.rows,
            stats.views.late,
        ),
    )


def run(script: list[Action], options: dict[str, Any]) -> None:
    through, from_file, moved = (new_engine(options) for _ in range(3))
    names = Script()
    for step, action in enumerate(script):
        call = names.call(action, through)
        from_file = opened(from_file)
        if action[0] in EVENTS:
            moved, done = restored(moved, through, options, step)
            assert (done.new, done.gone, done.tables, done.notifications) == (0, 0, (), ())
        try:
            notes = list(call(through))
        except TocsinError as fault:
            with pytest.raises(type(fault), match=re.escape(str(fault))):
                call(from_file)
            continue
        again = list(call(from_file))
        expected = [plain(note, with_generation=True) for note in notes]
        found = [plain(note, with_generation=True) for note in again]
        assert found == expected, (step, action)
        assert counts(from_file) == counts(through), (step, action)
        if action[0] in EVENTS:
            again = list(call(moved))
        else:
            moved, done = restored(moved, through, options, step)
            again = list(done.notifications)
        expected = sorted(plain(note, with_generation=False) for note in notes)
        found = sorted(plain(note, with_generation=False) for note in again)
        assert found == expected, (step, action)
        assert counts(moved) == counts(through), (step, action)


EVENTS = {"publish", "many", "flush"}


@settings(max_examples=1_000 if LONG else 25)
@given(st.lists(actions, min_size=3, max_size=30 if LONG else 14), options)
def test_a_random_script_goes_on_from_any_point(script: list[Action], options: dict[str, Any]) -> None:
    run(script, options)


RISE = "from s a next s b on b.k = a.k where b.x > a.x"


def running_engine() -> Engine:
    """Return an engine with something of everything that a state has."""
    engine = new_engine({"out_of_orderness": 2})
    engine.subscribe(RISE, id="rise")
    engine.subscribe_many("from s a next s b where b.x > a.x + :d", {"d": [1, 2]}, id="rise{d}")
    engine.subscribe("select max(x) from table t where z = 1", id="max")
    engine.subscribe("x > 1", id="filter")
    engine.publish(Event("kept", {"x": 5, "k": 9, "big": 2**80}, None, 1, 1, 100))
    for time, x in enumerate((1, 2, 0, 3), 2):
        engine.publish(Event(f"s{time}", {"k": 1, "x": x}, "s", time, time))
        engine.publish(Event(f"t{time}", {"k": time, "x": x, "z": time % 2}, "t", time, time))
    return engine


def test_other_subscriptions_begin_with_the_state_and_those_that_are_gone_leave_nothing() -> None:
    engine = running_engine()
    other = new_engine({"out_of_orderness": 2})
    for id_, text in {
        "max": "select max(x) from table t where z = 1",
        "rise": RISE,
        "rise1": "from s a next s b where b.x > a.x + 1",
        "rise2": "from s a next s b where b.x > a.x + 2.5",  # which asks something else
        "sum": "select sum(x) from table t where x > 0",
        "filter": "x > 1",
        "later": "x > 4",
        "other": "x > 5",
    }.items():
        other.subscribe(text, id=id_)
    done = other.restore(engine.snapshot())
    assert (done.subscriptions, done.new, done.gone, done.tables) == (3, 2, 1, ())
    told = [(note.subscription, note.event_ids, note.new) for note in done.notifications]
    assert told == [("sum", (), 6), ("later", ("kept",), None)]
    assert other.answer("max") == engine.answer("max") == 3
    one, two = (part.flush() for part in (engine, other))
    assert {note.subscription for note in two} == {"rise", "rise1"}
    assert sorted(plain(note, with_generation=False) for note in two) == sorted(
        plain(note, with_generation=False) for note in one if note.subscription != "rise2"
    )
    assert other.stats().published == engine.stats().published


def test_an_engine_goes_back_to_its_own_snapshot() -> None:
    engine = running_engine()
    snapshot, events = (
        engine.snapshot(),
        [
            Event(f"e{time}", {"k": 1, "x": time % 4, "z": 1}, stream, time, time)
            for time in range(6, 20)
            for stream in ("s", "t", None)
        ],
    )
    first = engine.publish_many(events).to_list()
    assert engine.restore(snapshot).notifications == ()
    assert engine.publish_many(events).to_list() == first != []


def test_tables_that_are_not_declared_are_left_out_and_the_others_emptied() -> None:
    engine = running_engine()
    other = Engine(clock=EventClock())
    other.table("own", key="k")
    other.publish({"k": 1}, stream="own", time=1)
    assert other.restore(engine.snapshot()).tables == ("t", "jumps")
    assert other.stats().views.rows == 0


def test_a_snapshot_that_does_not_fit_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    engine = running_engine()
    snapshot = engine.snapshot()
    keyed, ticking = Engine(clock=EventClock()), Engine(clock=EventClock())
    keyed.table("t", key="x")
    ticking.stream("s", tick="1 hour")
    ticking.subscribe(RISE, id="rise")
    engine.save(tmp_path / "engine")
    parts = unpack(snapshot)
    state = parts.part("state")
    wrong_sequences = Parts.join({}, {"state": without(state, "sequences"), "ids": parts.part("ids")})
    wrong_views = Parts.join({}, {"state": without(state, "views"), "ids": parts.part("ids")})
    for bytes_, reason in (
        (keyed.snapshot(), "the table `t` has the key `x` there, and `k` here"),
        (ticking.snapshot(), "a tick of the stream `s` is 3,600,000,000 microseconds there, and 1 here"),
        ((tmp_path / "engine").read_bytes(), "no state that Tocsin saved"),
        (b"", "no state that Tocsin saved"),
        (snapshot[:-1], "cut short"),
        (snapshot[:100] + bytes([snapshot[100] ^ 1]) + snapshot[101:], "its checksum differs"),
        (pack(Parts({}, {})), "it has no part `state`"),
        (pack(state), "it has no part `state`"),
        (pack(wrong_sequences), "state of sequences"),
        (pack(wrong_views), "state of views"),
    ):
        before, instances = counts(engine), engine.stats().sequences.instances
        with pytest.raises(SavedError, match=reason):
            engine.restore(bytes_)
        assert (counts(engine), engine.stats().sequences.instances) == (before, instances)
        assert engine.snapshot() == snapshot


def without(parts: Parts, name: str) -> Parts:
    """Return parts of which one has nothing in it."""
    names = [one for one in ("sequences", "buffer", "views", "kept") if one != name]
    about = {key: value for key, value in parts.about.items() if key != "parts"}
    return Parts.join(about, {one: parts.part(one) for one in names} | {name: Parts({}, {})})
