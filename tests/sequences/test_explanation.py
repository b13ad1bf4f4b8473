"""Why a sequence was or was not completed."""

from __future__ import annotations

import pytest

from tocsin import Engine, Event, parse
from tocsin.engine import EventClock
from tocsin.errors import EventError, SubscriptionError
from tocsin.model import Attribute, Sequence
from tocsin.sequences.compiling.compiler import compile_sequence
from tocsin.sequences.explanation import SequenceExplanation, explain_sequence
from tocsin.sequences.inspection import EndReason, Instance, NodeState, SequenceState

AUTQ = (
    "from stock a where a.vol > 10000 "
    "fold stock b on b.name = a.name while b.price < last.price compute mean = avg(price) "
    "where duration >= 3 and mean < 99 "
    "next stock c on c.name = a.name and c.vol > 1 where c.price > 1.05 * b.price within 20"
)


def stock(end: int, price: float, name: str = "IBM", vol: int = 500, stream: str = "stock") -> Event:
    return Event(f"e{end}", {"name": name, "price": price, "vol": vol}, stream, end, end)


def explained(event: Event | None, *waiting: NodeState, text: str = AUTQ) -> SequenceExplanation:
    query = parse(text)
    assert isinstance(query, Sequence)
    ready = compile_sequence(query)
    nodes = waiting or tuple(NodeState(0) for _ in ready.automaton.nodes)
    return explain_sequence("it", ready.automaton, ready.expression, SequenceState(nodes), event=event)


def folding(start: int, end: int, last: float, total: float, count: int) -> NodeState:
    """One instance that waits at the fold: since when, its last price, and the sum and count of prices so far."""
    slots = explained(None).automaton.nodes[0].slots
    held: dict[Attribute, float | str] = {Attribute("name", "a"): "IBM", Attribute("price", "last"): last}
    hidden = [slot for slot in slots if slot is not None and slot not in held]
    held |= dict(zip(hidden, (total, count), strict=True))
    return NodeState(1, (Instance(start, end, tuple(held.items())),))


def test_conditions_are_explained_with_their_static_parts() -> None:
    why = explained(None)
    assert (why.stream, why.alias, why.begin.whole, why.begin.static, why.begin.dynamic) == (
        "stock",
        "a",
        "a.vol > 10000",
        "vol > 10000",
        None,
    )
    fold, rebound = why.nodes
    assert (fold.on.whole, fold.on.static, fold.on.dynamic) == ("b.name = a.name", None, "b.name = a.name")
    assert fold.again is not None
    assert fold.again.whole == "b.price < last.price"
    assert fold.longest == 20
    assert (rebound.on.static, rebound.on.dynamic, rebound.again) == ("vol > 1", "c.name = a.name", None)
    assert rebound.onward.dynamic is not None
    assert "c.price > 1.05 * b.price" in rebound.onward.dynamic


def test_an_event_that_begins_it() -> None:
    why = explained(stock(1, 100, vol=20000))
    assert (why.matched, why.reason.truth) == (True, True)
    why = explained(stock(1, 100))
    assert (why.matched, [(reason.text, reason.value) for reason in why.failed]) == (
        False,
        [("a.vol > 10000", 500)],
    )


@pytest.mark.parametrize(
    ("event", "text", "matched"),
    [
        (stock(5, 80), "it goes round again and it goes on", True),
        (stock(2, 95, stream="other"), "nothing: it waits for `stock`", False),
        (stock(5, 101), "it ends: no edge can be taken", False),
        (stock(5, 80, "MSFT"), "nothing: the event is passed over", False),
        (stock(30, 80), "it ends: after 30 ticks its time is over", False),
        (stock(1, 80), "nothing: the event starts at 1, not after 1", False),
        (Event("x", {"price": 80}, "stock", 5, 5), "nothing: the event is passed over", False),
        (stock(2, 98.5), "it goes round again", True),  # too soon to go on
        (stock(5, 99.5), "it goes round again", True),  # the mean is still too high
    ],
)
def test_the_effect_of_an_event_on_an_instance(event: Event, text: str, matched: bool) -> None:
    why = explained(event, folding(1, 1, 100, 100, 1), NodeState(0))
    (effect,) = why.nodes[0].effects
    assert (effect.text, why.matched, effect.moves) == (text, matched, matched)


def test_recomputed_values_are_used_by_the_edge_onward() -> None:
    why = explained(stock(5, 80), folding(1, 1, 100, 100, 1), NodeState(0))
    (effect,) = why.nodes[0].effects
    assert effect.onward is not None
    values = {reason.text: reason.value for reason in effect.onward.predicates()}
    assert (values["mean < 99"], values["duration >= 3"]) == (90, 5)


def test_counts_and_reasons_come_through() -> None:
    waiting = NodeState(7, (), ((EndReason.BROKEN, 3),), (EndReason.BROKEN, stock(4, 100)))
    why = explained(None, waiting, NodeState(2))
    assert why.instances == 9
    assert why.nodes[0].state == waiting
    assert "3 ended: `while` failed" in why.drawing(title="it")


def test_sequences_in_parentheses_are_explained_too() -> None:
    why = explained(stock(1, 5), text="from stock a next (from stock x where x.price > 3 next news y) z")
    ((name, inner),) = why.inner
    assert "from stock x" in name
    assert (inner.matched, inner.reason.text, inner.nodes[0].stream) == (True, "x.price > 3", "news")


def test_the_engine_explains_instances_and_the_reasons_of_ended_ones() -> None:
    made = Engine(clock=EventClock())
    made.subscribe(AUTQ, id="s")
    made.subscribe_many(AUTQ.replace("99", ":m"), {"m": [98, 1]}, id="m{m}")
    for event in (stock(1, 100, vol=20000), stock(2, 98), stock(3, 95), stock(4, 101)):
        made.publish(event)
    made.publish(stock(5, 90, vol=20000))
    for name in ("s", "m98"):
        fold, rebound = made.explain(name).nodes
        assert fold.state is not None
        assert rebound.state is not None
        assert (fold.state.instances, [one.start for one in fold.state.samples]) == (1, [5])
        assert dict(fold.state.samples[0].values)[Attribute("price", "last")] == 90
        assert [event.id for event in fold.state.samples[0].events] == ["e5"]
        assert dict(fold.state.ended)[EndReason.BROKEN] == 1
        assert fold.state.last is not None
        assert fold.state.last[1] == stock(4, 101)
    why = made.explain("s", stock(8, 80))
    assert isinstance(why, SequenceExplanation)
    assert [effect.text for effect in why.nodes[0].effects] == ["it goes round again and it goes on"]
    made.publish(stock(8, 80))
    assert [node.state and node.state.instances for node in made.explain("s").nodes] == [1, 1]


def test_the_engine_explains_a_sequence_with_and_without_an_event() -> None:
    made = Engine(clock=EventClock())
    made.subscribe("from stock a where a.vol > 1000 next stock b on b.name = a.name", id="s", valid_until=90)
    made.subscribe_many("from stock a where a.vol > :v next stock b", {"v": [7]}, id="t{v}")
    made.subscribe("from stock a next stock b", id="later", valid_from=50)
    made.subscribe("price > 1", id="f")
    made.publish(stock(1, 100, vol=2000))
    assert made.explain("s").begin.whole == "a.vol > 1000"
    assert made.explain("t7").begin.whole == "a.vol > 7"  # with the row's own value
    assert made.explain("later").begins == 50
    assert made.explain("s").begins is None
    why = made.explain("s", {"name": "IBM", "vol": 2000}, stream="stock", time=5)
    assert isinstance(why, SequenceExplanation)
    assert why.matched
    assert made.explain("s", {"vol": 2000}, time=5).outside == (
        "it reads `stock`, the event is of no stream",
    )
    assert "it is late" in made.explain("s", {"vol": 2000}, stream="stock", time=0).outside[0]
    assert "valid until 90" in made.explain("s", {"vol": 2000}, stream="stock", time=90).outside[0]
    deleted = made.explain("s", {"vol": 2000, "$delete": True}, stream="stock", time=9)
    assert (deleted.matched, deleted.outside) == (
        False,
        ("the event is a deletion, which reaches no sequence",),
    )
    with pytest.raises(EventError, match="`f` is a filter, which is explained by an event"):
        made.explain("f")
    with pytest.raises(SubscriptionError, match="it is not subscribed"):
        made.explain("nobody")


def test_an_expired_sequence_that_is_still_stored_has_no_state() -> None:
    made = Engine(clock=EventClock(), lateness=100)
    made.subscribe("from stock a next stock b", id="x", valid_until=10)
    for end in (5, 20):
        made.publish(stock(end, 1))
    why = made.explain("x", stock(21, 1))
    assert isinstance(why, SequenceExplanation)
    assert (why.state, why.begins, why.matched) == (None, None, False)
    assert why.outside == ("it is valid until 10, the event ended at 21",)
    assert made.explain("x").state is None
