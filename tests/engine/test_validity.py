"""Validity, late events, expiry under churn and `apply`, against a model simple enough to be seen to be right."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import Struct

from tests.contract.evaluator import holds
from tocsin import Engine, parse
from tocsin.engine import ManualClock
from tocsin.errors import ApplyError, SubscriptionError
from tocsin.language import parse_condition
from tocsin.model import Notification, Subscription

LATENESS = 3
TEXTS = [
    "a = 1",
    "a > 1 or b = 1",
    "not a = 2",
    "a is missing",
    "b in (1, 2) and a >= 0",
    "a = 1 and a = 2",
    "true",
]
ids = st.sampled_from(["p", "q", "r", "s", "t"])
texts = st.sampled_from(TEXTS)
times = st.integers(0, 30)
ends = st.one_of(st.none(), st.integers(0, 40))
owners = st.sampled_from([None, "ann", "bob"])
attributes = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 3))


def since(begin: int | None) -> float:
    return -inf if begin is None else begin


def until(end: int | None) -> float:
    return inf if end is None else end


class StoredSubscription(Struct):
    """A subscription in the model."""

    text: str
    begin: float
    end: float
    owner: str | None


class Kept(Struct):
    """An event in the model."""

    attributes: dict[str, int]
    time: int
    until: int


class EngineMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock(0)
        self.engine = Engine(clock=self.clock, lateness=LATENESS)
        self.stored: dict[str, StoredSubscription] = {}
        self.kept: dict[str, Kept] = {}
        self.count = 0

    def let_go(self) -> None:
        self.stored = {i: h for i, h in self.stored.items() if self.clock.time < h.end + LATENESS}
        self.kept = {i: k for i, k in self.kept.items() if self.clock.time < k.until}

    @staticmethod
    def matches(stored: StoredSubscription, data: dict[str, int], time: int) -> bool:
        return stored.begin <= time < stored.end and holds(parse_condition(stored.text), dict(data))

    def met(self, names: list[str]) -> list[tuple[str, str]]:
        return sorted(
            (name, event)
            for name in names
            for event, kept in self.kept.items()
            if self.matches(self.stored[name], kept.attributes, kept.time)
        )

    @staticmethod
    def notified(notes: tuple[Notification, ...] | list[Notification]) -> list[tuple[str, str]]:
        return sorted((note.subscription, note.event_ids[0]) for note in notes)

    @rule(step=st.integers(0, 6))
    def time_passes(self, step: int) -> None:
        self.clock.time += step

    @rule(name=ids, text=texts, begin=ends, end=ends, owner=owners, replace=st.booleans())
    def subscribe(
        self, name: str, text: str, begin: int | None, end: int | None, owner: str | None, replace: bool
    ) -> None:
        self.let_go()
        if name in self.stored and not replace:
            with pytest.raises(SubscriptionError):
                self.engine.subscribe(text, id=name)
            return
        done = self.engine.subscribe(
            text, id=name, valid_from=begin, valid_until=end, owner=owner, replace=replace
        )
        self.stored.pop(name, None)
        self.stored[name] = StoredSubscription(text, since(begin), until(end), owner)
        assert self.notified(done.notifications) == self.met([name])

    @rule(rows=st.lists(st.tuples(ids, st.integers(0, 3)), max_size=4), end=ends)
    def subscribe_many(self, rows: list[tuple[str, int]], end: int | None) -> None:
        self.let_go()
        unique = dict(reversed(rows))
        done = self.engine.subscribe_many(
            "a = :v", [{"name": n, "v": v} for n, v in rows], id="name", valid_until=end, replace=True
        )
        for name, value in rows:
            if value == unique[name]:
                self.stored.pop(name, None)
        for name in done.ids:
            value = next(v for n, v in rows if n == name)
            self.stored[name] = StoredSubscription(f"a = {value}", since(None), until(end), None)
        assert self.notified(done.notifications) == self.met(list(done.ids))

    @rule(name=ids)
    def unsubscribe(self, name: str) -> None:
        self.let_go()
        if name in self.stored:
            self.engine.unsubscribe(name)
            del self.stored[name]
        else:
            with pytest.raises(SubscriptionError):
                self.engine.unsubscribe(name)

    @rule(data=attributes, time=times, kept_until=ends)
    def publish(self, data: dict[str, int], time: int, kept_until: int | None) -> None:
        self.let_go()
        self.count += 1
        name = f"e{self.count}"
        notes = self.engine.publish(dict(data), time=time, id=name, valid_until=kept_until)
        wanted = sorted(i for i, stored in self.stored.items() if self.matches(stored, data, time))
        assert sorted(note.subscription for note in notes) == wanted
        if kept_until is not None:
            self.kept[name] = Kept(data, time, kept_until)

    @rule(
        wanted=st.dictionaries(ids, st.tuples(texts, ends), max_size=4),
        owner=st.sampled_from(["ann", "bob"]),
        dry=st.booleans(),
    )
    def apply(self, wanted: dict[str, tuple[str, int | None]], owner: str, dry: bool) -> None:
        self.let_go()
        subscriptions = [Subscription(i, parse(text), valid_until=end) for i, (text, end) in wanted.items()]
        mine = {i: h for i, h in self.stored.items() if h.owner == owner}
        if any(i in self.stored and i not in mine for i in wanted):
            with pytest.raises(ApplyError):
                self.engine.apply(subscriptions, owner=owner)
            return
        done = self.engine.apply(subscriptions, owner=owner, dry_run=dry)
        new = {
            i: StoredSubscription(text, since(None), until(end), owner) for i, (text, end) in wanted.items()
        }
        assert set(done.added) == set(new) - set(mine)
        assert set(done.removed) == set(mine) - set(new)
        assert set(done.changed) == {i for i in set(new) & set(mine) if new[i] != mine[i]}
        if dry:
            assert done.notifications == ()
            return
        self.stored = {i: h for i, h in self.stored.items() if h.owner != owner} | new
        assert self.notified(done.notifications) == self.met([*done.added, *done.changed])

    @invariant()
    def nothing_is_held_that_the_model_does_not_hold(self) -> None:
        if not hasattr(self, "engine"):
            return
        self.let_go()
        stats = self.engine.stats()
        assert {s.id for s in self.engine.subscriptions()} == set(self.stored)
        assert stats.subscriptions == len(self.stored)
        assert stats.kept_events == len(self.kept)
        assert stats.matcher.subscriptions == sum(h.text != "a = 1 and a = 2" for h in self.stored.values())


TestEngine = EngineMachine.TestCase
