"""Sequences of a known shape are the sequences that their texts say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.sequences.paths import matcher_paths
from tests.sequences.strategies import sequences, streams
from tocsin import Engine, Event, Subscription
from tocsin.engine import subscription_store
from tocsin.language import parse, to_text
from tocsin.language.check import read_query
from tocsin.language.sequence_shapes import remember_sequence, shaped_sequence
from tocsin.language.text_shapes import cut_text
from tocsin.model.errors import SubscriptionError, TocsinError

JUMP = "from stock a next stock b on b.name = a.name where b.price > {} * a.price"
NUMBERS = ["0", "1", "2", "3", "1.5", "2.0", "007", "1e3", "5", "9007199254740993", "1e400", ".5"]
STRINGS = ["''", "'a'", "'ab'", "'b'", "'it''s'", "'2026-01-01T00:00:00Z'", "'a%'"]


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    """Begin without shapes, so that a test does not depend on those before."""
    with (
        patch("tocsin.language.sequence_shapes._places", {}),
        patch("tocsin.language.sequence_shapes._shapes", {}),
    ):
        yield


@contextmanager
def without_shapes() -> Iterator[None]:
    with patch.object(subscription_store, "shaped_sequence", lambda _: None):
        yield


@st.composite
def alike(draw: st.DrawFn) -> list[str]:
    """Texts that differ in some constants only; the second and third are like the first, so that the shape is known."""
    text = to_text(draw(sequences(publish=draw(st.sampled_from([None, None, "p"])))))
    cut = cut_text(text)
    assume(cut is not None)
    assert cut is not None
    key, written = cut
    varied = draw(st.sets(st.sampled_from(range(len(written))))) if written else set()

    def other(i: int) -> str:
        if i not in varied:
            return written[i]
        return draw(st.sampled_from(STRINGS if written[i][0] == "'" else NUMBERS))

    found = [text, text]
    for _ in range(4):
        constants = [*map(other, range(len(written))), ""]
        found.append("".join(piece + one for piece, one in zip(key[:-1], constants, strict=True)))
    return found


def subscribed_one_by_one(engine: Engine, texts: list[str]) -> list[object]:
    """Subscribe to each text by itself; return the warnings or the error of each."""
    outcomes: list[object] = []
    for number, text in enumerate(texts):
        try:
            outcomes.append(engine.subscribe(text, id=f"{number}").warnings)
        except TocsinError as error:
            outcomes.append(str(error))
    return outcomes


def subscribed_at_once(engine: Engine, texts: list[str]) -> list[object]:
    done = engine.subscribe_all({f"{number}": text for number, text in enumerate(texts)})
    return [
        str(done.errors[number]) if number in done.errors else done.warnings.get(f"{number}", ())
        for number in range(len(texts))
    ]


def answers(engine: Engine, events: list[Event]) -> list[str]:
    """Return all notifications, and then the queries, the explanations and the sizes of what is stored."""
    told = [re.sub(r"generation=\d+", "", repr(one)) for one in engine.publish_many(events)]
    stored = [repr(one) for one in engine.subscriptions()]
    explained = [repr(engine.explain(one.id)) for one in engine.subscriptions()]
    return [*told, *stored, *explained]


def paths(engine: Engine) -> list[set[bytes]]:
    """Return the paths of all nodes, by the length of a tick."""
    matchers = engine._store.sequences._matchers
    return [matcher_paths(matchers[tick].matcher) for tick in sorted(matchers)]  # type: ignore[arg-type]


@settings(max_examples=60)
@given(alike(), streams())
def test_shaped_sequences_are_the_sequences_of_their_texts(texts: list[str], events: list[Event]) -> None:
    fresh, bulk, single = Engine(), Engine(), Engine()
    with without_shapes():
        expected = subscribed_one_by_one(fresh, texts)
    assert subscribed_one_by_one(single, texts) == expected
    assert subscribed_at_once(bulk, texts) == expected
    told = answers(fresh, events)
    assert answers(single, events) == told
    assert answers(bulk, events) == told
    # A saved engine finds partial matches again by these paths, whether it knows the shape of their texts or not.
    assert paths(bulk) == paths(single) == paths(fresh)
    for number in range(0, len(texts), 2):
        for engine in (fresh, bulk, single):
            if f"{number}" in {one.id for one in engine.subscriptions()}:
                engine.unsubscribe(f"{number}")
    assert bulk.stats().sequences == single.stats().sequences == fresh.stats().sequences


def test_the_random_texts_have_free_constants() -> None:
    """The test above would say little if hardly a text had a shape, or a shape no free constant."""
    seen: Counter[str] = Counter()

    @settings(max_examples=40, derandomize=True)
    @given(alike())
    def look(texts: list[str]) -> None:
        subscribed_one_by_one(Engine(), texts)
        found = [shaped_sequence(text) for text in texts]
        seen["texts"] += len(texts)
        seen["shaped"] += sum(one is not None for one in found)
        seen["free"] += sum(one is not None and bool(one.constants) for one in found)

    look()
    assert seen["free"] > seen["texts"] / 10, seen
    assert seen["shaped"] > seen["texts"] / 4, seen


def constants_of(text: str, other: str) -> list[object] | None:
    """Return the free constants of `other` once `text` has come twice; None if it is of no shape."""
    for _ in range(2):
        remember_sequence(text, parse(text))
    found = shaped_sequence(other)
    return None if found is None else list(found.constants)


@pytest.mark.parametrize(
    ("text", "other", "constants"),
    [
        (JUMP.format(1.5), JUMP.format(2), [2]),
        (
            "from s a where x = 'k' next s b on b.y < 5",
            "from s a where x = 'it''s' next s b on b.y < .5",
            ["it's", 0.5],
        ),
        (
            "from s a next s b on b.x > -1 within 5 ticks",
            "from s a next s b on b.x > -2 within 5 ticks",
            [-2],
        ),
        # What decides something belongs to the shape: it may not differ, and is no free constant where it is the same.
        ("from s a next s b on b.x > 1 within 5 ticks", "from s a next s b on b.x > 1 within 6 ticks", None),
        ("from s a next s b on duration < 5", "from s a next s b on duration < 6", None),
        ("from s a next s b on b.x in (1, 2)", "from s a next s b on b.x in (1, 3)", None),
        ("from s a next s b on b.x between 1 and 2", "from s a next s b on b.x between 3 and 2", None),
        ("from s a next s b on b.x > 1 and b.x < 5", "from s a next s b on b.x > 5 and b.x < 1", None),
        ("from s a next s b on b.x > 1 where x < 5", "from s a next s b on b.x > 5 where x < 1", None),
        ("from s a next s b on b.x > 1 where a.x < 5", "from s a next s b on b.x > 2 where a.x < 7", [2, 7]),
        ("from s a compute m = a.x next s b on m > 5", "from s a compute m = a.x next s b on m > 6", None),
        (
            "from s a compute m = a.x + a.y next s b on m > 5",
            "from s a compute m = a.x + a.y next s b on m > 6",
            [6],
        ),
        ("from s a next s b on b.x = 1 or b.y = 1", "from s a next s b on b.x = 2 or b.y = 1", None),
        ("from s a next s b on not (b.x = 1)", "from s a next s b on not (b.x = 2)", None),
        ("from s a next s b on b.w like 'a%'", "from s a next s b on b.w like 'b%'", None),
        (
            "from s a next s b on b.t > timestamp '2026-01-01T00:00:00Z'",
            "from s a next s b on b.t > timestamp '2027-01-01T00:00:00Z'",
            None,
        ),
        ("from s a next s b on b.x > 2 * 3 + a.x", "from s a next s b on b.x > 2 * 4 + a.x", None),
        ("from s a next s b on 5 < b.x", "from s a next s b on 6 < b.x", None),
        ("from s a next s b select b.x * 2 as y", "from s a next s b select b.x * 3 as y", None),
        ("from s a compute n = 1 next s b", "from s a compute n = 2 next s b", None),
        (
            "from s a next (from s c next s d on d.x = 1) b",
            "from s a next (from s c next s d on d.x = 2) b",
            None,
        ),
        ("from s a next s b on b.x = 1 -- 5", "from s a next s b on b.x = 2 -- 5", None),
    ],
)
def test_constants_that_decide_something_belong_to_the_shape(
    text: str, other: str, constants: list[object] | None
) -> None:
    assert constants_of(text, other) == constants


def test_a_fixed_constant_does_not_keep_others_from_being_free() -> None:
    text = "from s a where a.k in (1, 2) next s b on b.x > {} * a.x and b.y = 'q' within {} ticks"
    assert constants_of(text.format(1, 5), text.format(3, 5)) == [3, "q"]
    assert constants_of(text.format(1, 6), text.format(4, 6)) == [4, "q"]
    assert constants_of(text.format(1, 5), text.format(3, 7)) is None


def test_a_shape_is_compiled_once_and_again_when_ticks_change() -> None:
    text = "from s a next s b on b.x > {} within 5 seconds"
    engine = Engine()
    with patch.object(subscription_store, "read_query", wraps=read_query) as read:
        for number in range(4):
            engine.subscribe(text.format(number), id=f"{number}")
    assert read.call_count == 2  # once to see it, once to learn its shape
    for id_ in "0123":
        engine.unsubscribe(id_)
    engine.stream("s", tick="1 second")
    engine.subscribe(text.format(7), id="seconds")
    found = list(engine.publish_many([Event("a", {"x": 1}, "s", 0, 0), Event("b", {"x": 8}, "s", 4, 4)]))
    assert [one.subscription for one in found] == ["seconds"]
    engine.unsubscribe("seconds")
    engine.stream("s", tick="1 hour")
    with pytest.raises(SubscriptionError, match="no whole number of ticks") as fault:
        engine.subscribe(text.format(7), id="hours")
    assert fault.value.id == "hours"


def test_sequences_of_one_shape_are_removed_replaced_and_compared_one_by_one() -> None:
    engine = Engine()
    texts = {f"j{number}": JUMP.format(1 + number / 10) for number in range(6)}
    assert engine.subscribe_all(texts).ids == tuple(texts)
    trades = [
        Event("a", {"name": "X", "price": 10}, "stock", 1, 1),
        Event("b", {"name": "X", "price": 13}, "stock", 2, 2),
    ]
    assert {one.subscription for one in engine.publish_many(trades)} == {"j0", "j1", "j2"}
    engine.unsubscribe("j1")
    engine.subscribe(JUMP.format(9), id="j2", replace=True)
    later = [
        Event("c", {"name": "X", "price": 10}, "stock", 3, 3),
        Event("d", {"name": "X", "price": 13}, "stock", 4, 4),
    ]
    assert {one.subscription for one in engine.publish_many(later)} == {"j0"}
    assert Subscription("j2", parse(JUMP.format(9))) in engine.subscriptions()
    engine.apply({"x": JUMP.format(5), "y": JUMP.format(6)}, owner="me")
    difference = engine.apply({"x": JUMP.format(5.0), "y": JUMP.format(7)}, owner="me", dry_run=True)
    assert (difference.unchanged, difference.changed) == (("x",), ("y",))


def test_sequences_of_one_shape_that_read_each_other_are_refused_one_by_one() -> None:
    text = "from {} a next {} b on b.x > {} publish as {}"
    engine = Engine()
    first = {f"f{number}": text.format("s", "s", number, "t") for number in range(4)}
    back = {f"b{number}": text.format("t", "t", number, "s") for number in range(4)}
    done = engine.subscribe_all(first | back)
    assert done.ids == tuple(first)
    with without_shapes():
        expected = Engine().subscribe_all(first | back)
    assert {place: str(error) for place, error in done.errors.items()} == {
        place: str(error) for place, error in expected.errors.items()
    }
    for id_ in first:
        engine.unsubscribe(id_)
    assert engine.subscribe_all(back).ids == tuple(back)
