"""Snapshots of the runtime and the reorder buffer: another session goes on as if nothing had happened."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sequences.outcomes import event
from tests.sequences.scripts import Add
from tests.sequences.sessions import History, Session, Step, Subscribe, bags, histories
from tocsin.model import Event, Value
from tocsin.model.errors import SavedError
from tocsin.model.options import ALWAYS, FOREVER, Validity
from tocsin.model.values import Opaque
from tocsin.sequences.modes import MODES
from tocsin.sequences.running.matcher import AutomatonMatcher
from tocsin.structures.archive import Parts


def _restarted(current: Session, step: Step, random: Random) -> Session:
    """Return a new session that goes on from a snapshot, with other sequences and numbers."""
    current._gone |= set(step.gone)
    saved = current.saved()
    fresh = current.successor(random, step.coming)
    fresh.restore(saved)
    return fresh


def _rewound(current: Session, step: Step, random: Random) -> Session:
    """Return the session after it went on for a while, and took its older state up again."""
    saved = current.saved()
    current.push([event(f"x{n}", random.randint(0, 20), None, "s", g=0, x=n) for n in range(3)])
    current.unsubscribe(step.gone)
    for one in step.coming:
        current.subscribe(one, [number + 100 for number in one.add.numbers])
    current.push(step.events)
    current.restore(saved)
    return current


@settings(max_examples=60)
@given(histories(), st.integers(0, 2**32))
def test_a_session_that_is_restored_at_every_step_goes_on_as_before(history: History, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - nothing secret
    lasting, current = (Session(history.ticks, history.delay) for _ in range(2))
    for step in history.steps:
        lasting.unsubscribe(step.gone)
        for one in step.coming:
            lasting.subscribe(one, one.add.numbers)
        current = random.choice([_restarted, _restarted, _rewound])(current, step, random)
        assert current.counts() == lasting.counts()
        middle = len(step.events) // 2
        for events in (step.events[:middle], step.events[middle:]):
            current.restore(current.saved())
            expected, found = lasting.push(events), current.push(events)
            assert bags(found) == bags(expected)
        assert current.counts() == lasting.counts()


def _session(*texts: str, delay: int = 0, full: bool = True) -> Session:
    session = Session({}, delay)
    for number, text in enumerate(texts):
        session.subscribe(Subscribe(Add(number, text, {}, full), Validity()), [number])
    return session


def _copy(session: Session) -> Session:
    """Return a new session with the state of another."""
    fresh = session.successor(Random(1), ())  # noqa: S311 - nothing secret
    assert fresh.restore(session.saved()) == 0
    return fresh


def _notified(found: dict[Any, list[Any]]) -> list[Any]:
    return [one for number, each in found.items() if number != "made" for one in each]


def test_values_of_every_kind_are_the_same_afterwards() -> None:
    values: list[Value | None] = [
        2**70,
        -(2**63),
        2.0**70,
        1.0,
        1,
        True,
        "",
        "größe",
        float("inf"),
        Opaque("bytes"),
        None,
    ]
    session = _session(
        "from s a next s b on b.n = a.n select a.y as y, a.n as n",
        "from s a fold s b on b.n = a.n compute low = min(b.y) select low as low, a.y as y",
    )
    events = [
        Event(f"e{i}", {"n": i} if value is None else {"n": i, "y": value}, "s", i, i)
        for i, value in enumerate(values)
    ]
    session.push(events)
    later = [Event(f"f{i}", {"n": i, "y": 0.5}, "s", 100 + i, 100 + i) for i in range(len(values))]
    fresh = _copy(_copy(session))
    expected, found = session.push(later), fresh.push(later)
    assert repr(found) == repr(expected)
    assert len(_notified(found)) == 2 * len(values)


def test_matches_of_one_event_keep_their_order() -> None:
    """The instances that one event completes are found in the same order, newest first, wherever they are."""
    session = _session("from s a next s b on b.k = a.k", "from s a fold s b on b.k = a.k")
    session.push([event(f"e{n}", n // 3, None, "s", k=n % 2) for n in range(12)])
    fresh = _copy(session)
    last = [event("last", 9, None, "s", k=0), event("more", 9, None, "s", k=1)]
    expected = session.push(last)
    assert fresh.push(last) == expected
    assert len(_notified(expected)) > 6


def test_simultaneous_events_see_what_their_own_epoch_used_up() -> None:
    session = _session("from s a where a.x = 1 next s b on b.x = 2")
    session.push([event("e1", 1, None, "s", x=1), event("e2", 2, None, "s", x=2)])
    fresh = _copy(session)
    assert len(_notified(fresh.push([event("e3", 2, None, "s", x=2)]))) == 1
    assert _notified(fresh.push([event("e4", 3, None, "s", x=2)])) == []


def test_only_events_that_a_match_may_need_are_kept() -> None:
    session = _session("from s a where a.x = 1 next s b on b.k = a.k")
    session.push([event(f"e{n}", n, None, "s", x=n % 100, k=n) for n in range(1000)])
    fresh = _copy(session)
    (matcher,) = fresh.runtime._matchers.values()
    stats = matcher.matcher.stats()
    assert (stats.kept_events, stats.instances, stats.events) == (10, 10, 1000)


def test_what_has_no_subscription_is_dropped_and_counted() -> None:
    session = _session("from s a where a.w = 'x' next s b", "from s a where a.w = 'y' next s b on b.x = a.x")
    session.push([event("e1", 1, None, "s", w="x"), event("e2", 1, None, "s", w="y", x="only here")])
    saved = session.saved()
    fresh = Session({}, 0)
    fresh.subscribe(session.coming[0], [7])
    assert fresh.restore(saved) == 1
    (matcher,) = fresh.runtime._matchers.values()
    stats = matcher.matcher.stats()
    assert (stats.instances, stats.kept_events) == (1, 1)
    assert "only here" not in matcher.matcher._codec.strings.codes  # type: ignore[attr-defined]
    assert _notified(fresh.push([event("e3", 2, None, "s", x="only here")]))[0][0] == "e3"


def test_a_new_sequence_sees_no_event_that_is_held_back() -> None:
    text = "from s a next s b"
    session = _session(text, delay=5)
    session.push([event("e1", 1, None, "s"), event("e2", 4, None, "s")])
    fresh = session.successor(Random(1), [Subscribe(Add(1, text, {}, True), Validity())])  # noqa: S311
    fresh.restore(session.saved())
    found = fresh.push([event(f"e{n}", n, None, "s") for n in (8, 12, 20)])
    # e12 releases e2 and e20 the next two; the new one sees these alone.
    assert {number: [one[0] for one in each] for number, each in found.items()} == {
        0: ["e12", "e20", "e20"],
        1: ["e20"],
    }


def test_counts_of_work_go_on() -> None:
    session = _session("from s a where a.x = 1 next s b on b.x = 2 where b.y = 3 within 3")
    session.push([event(f"e{n}", n, None, "s", x=n % 3, y=n % 2) for n in range(40)])
    fresh = _copy(session)
    more = [event(f"f{n}", 100 + n, None, "s", x=n % 3, y=3) for n in range(10)]
    session.push(more)
    fresh.push(more)
    (one,), (other,) = session.runtime._matchers.values(), fresh.runtime._matchers.values()
    for name in ("events", "matches", "made", "expired", "stopped", "dropped", "instances", "examined"):
        assert getattr(other.matcher.stats(), name) == getattr(one.matcher.stats(), name), name
    assert one.matcher.stats().stopped > 0 < one.matcher.stats().matches


def test_a_sequence_that_expires_before_it_begins_never_begins() -> None:
    session = _session("from s a next s b", delay=5)
    session.push([event("e1", 20, None, "s")])
    session.subscribe(Subscribe(Add(1, "from s a next s b", {}, True), Validity(ALWAYS, 18)), [1])
    found = session.push([event(f"e{n}", n, None, "s") for n in (19, 22, 24, 40, 41, 60)])
    assert list(found) == [0]


def test_an_expired_sequence_is_back_in_an_older_state() -> None:
    session = Session({}, 0)
    one = Subscribe(Add(0, "from s a next s b", {}, True), Validity(ALWAYS, 10))
    session.subscribe(one, [0])
    session.subscribe(Subscribe(Add(1, "from s a next s b", {}, True), Validity(15, FOREVER)), [1])
    session.push([event("e1", 1, None, "s")])
    early = session.saved()
    assert len(_notified(session.push([event("e2", 3, None, "s"), event("e3", 20, None, "s")]))) == 1
    late = session.saved()
    for _ in range(2):
        session.restore(early)
        assert session.counts()[0] == [(0, None, False), (1, 15, False)]
        assert len(session.push([event("e2", 3, None, "s")])[0]) == 1
        session.restore(late)
        assert session.counts()[0] == [(0, None, True), (1, None, False)]
        assert list(session.push([event("e4", 21, None, "s")])) == [1]


# what does not fit


def _damaged(parts: Parts) -> list[Parts]:
    """Return parts in which one thing is missing, cut short or of another kind."""
    found = []
    for name, member in parts.members.items():
        others: list[Any] = [None]
        if isinstance(member, np.ndarray):
            others += [member[:-1], member.astype(np.float64), member.reshape(1, *member.shape), b"other"]
        else:
            others += [member[:-1], b"\xff" + member[1:], np.zeros(3, dtype=np.uint8)]
        for other in others:
            members = {**parts.members, name: other}
            if other is None:
                del members[name]
            found.append(Parts(parts.about, members))
    found += [
        Parts({k: v for k, v in parts.about.items() if k != name}, parts.members) for name in parts.about
    ]
    return found


def test_damaged_state_is_refused_and_changes_nothing() -> None:
    session = _session(
        "from s a where a.w = 'x' next s b on b.w = a.w where b.x > a.x within 50",
        "from s a fold s b on b.x > last.x compute n = count(*)",
        delay=2,
    )
    session.push([event(f"e{n}", n, None, "s", w="xyz"[n % 3], x=n * 1.5 if n % 2 else n) for n in range(12)])
    order, buffer, parts = session.saved()
    fresh = _copy(session)
    for damaged in _damaged(parts):
        with pytest.raises(SavedError, match=r"sequences|partial matches"):
            fresh.restore((order, buffer, damaged))
    for damaged in _damaged(buffer):
        with pytest.raises(SavedError, match=r"reorder buffer|wait for their turn"):
            fresh.buffer.restore(damaged)
    fresh.restore((order, buffer, parts))
    with pytest.raises(SavedError, match="not those of 5 sequences"):
        fresh.restore(([0, 1, 2, 3, 4], buffer, parts))
    with pytest.raises(SavedError, match="no state of sequences"):
        fresh.runtime.restore(buffer, np.arange(2))
    later = [event(f"f{n}", 20 + n, None, "s", w="x", x=30.0 + n) for n in range(4)]
    assert fresh.push(later) == session.push(later)


@pytest.mark.parametrize("mode", ["no merging", "no instance index"])
def test_a_matcher_with_other_optimisations_is_refused(mode: str) -> None:
    parts = AutomatonMatcher(matcher="oracle").snapshot()
    other = AutomatonMatcher(matcher="oracle", mode=MODES[mode])
    with pytest.raises(SavedError, match="other optimisations"):
        other.read_snapshot(parts)
    if not other.mode.merging:
        with pytest.raises(SavedError, match="does not merge"):
            other.snapshot()


# a snapshot of format 1, as Tocsin wrote it when snapshots were new

_OLD: Final = Path(__file__).parent / "snapshot_1.json"
_OLD_TEXTS: Final = (
    "from s a where a.w = 'IBM' next s b on b.w = a.w where b.x > a.x or b.w like 'x%' within 90",
    "from s a where a.x in (1, 2.5, 9) fold s b on b.x > last.x compute m = max(b.x), n = count(*) where m > 3.5",
    "from s a where (a.x = 1 or a.y = 2) and (a.x = 3 or a.z = 4) next s b on b.t > '2026-01-01T00:00:00Z' or b.x = 30",
    'from (from s a where a.x = 1 next s b) c next s d on d.w contains \'B\' select d.x - c."b.x" as rise, c."a.w" as w',
    "from s a where a.big = 1180591620717411303424 next s b on b.big = a.big publish as p",
    'from p a next s b on b.x > 2 * a."a.x"',
)
_OLD_EVENTS: Final = [
    event("e1", 1, None, "s", w="IBM", x=1, y=2, z=4, big=2**70),
    event("e2", 2, None, "s", w="MSFT", x=2.5, t="2025-01-01T00:00:00Z"),
    event("e3", 3, None, "s", x=9, big=2**70, y=Opaque("bytes")),
    event("e4", 9, 4, "s", w="IBM", x=0.5, y=2, z=4),
]
_NEW_EVENTS: Final = [
    event("e5", 5, None, "s", x=10, w="late"),
    event("e6", 10, None, "s", x=30, w="IBM", t=datetime(2026, 2, 1, tzinfo=UTC)),
    event("e7", 14, None, "s", x=70, w="BIG", big=2**70),
    event("e8", 20, None, "s", x=1),
]


def _write_old() -> None:
    """Write the file anew, when a new format has a file of its own."""
    session = _session(*_OLD_TEXTS, delay=2)
    session.push(_OLD_EVENTS)
    order, *both = session.saved()
    plain = [
        [
            parts.about,
            {
                name: [None, b64encode(member).decode()]
                if isinstance(member, bytes)
                else [[member.dtype.str, *member.shape], b64encode(member.tobytes()).decode()]
                for name, member in parts.members.items()
            },
        ]
        for parts in both
    ]
    _OLD.write_text(json.dumps([order, *plain]), "utf-8")


def _old_state() -> tuple[list[int], Parts, Parts]:
    order, *both = json.loads(_OLD.read_text("utf-8"))
    found = []
    for about, members in both:
        read: dict[str, Any] = {}
        for name, (kind, text) in members.items():
            data = b64decode(text)
            read[name] = data if kind is None else np.frombuffer(data, dtype=kind[0]).reshape(kind[1:])
        found.append(Parts(about, read))
    return order, found[0], found[1]


def test_a_snapshot_of_the_first_format_is_still_read() -> None:
    """If this fails because paths are others, partial matches of saved engines would be lost: raise the format."""
    session, lasting = _session(*_OLD_TEXTS, delay=2), _session(*_OLD_TEXTS, delay=2)
    lasting.push(_OLD_EVENTS)
    assert session.restore(_old_state()) == 0
    assert session.counts() == lasting.counts()
    expected = lasting.push(_NEW_EVENTS)
    assert repr(session.push(_NEW_EVENTS)) == repr(expected)
    assert set(expected) == {0, 1, 2, 3, 4, 5, "made"}
