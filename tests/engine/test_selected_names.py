"""The names of selected and published values: the same in filters, sequences and views."""

from __future__ import annotations

from typing import Any

import pytest

from tocsin import Engine, attr, parse, stream
from tocsin.engine import EventClock
from tocsin.language import from_json, to_json, to_text
from tocsin.model.errors import LanguageError, TocsinError

EVENT: dict[str, object] = {"name": "a", "price": 5}


def engine(*texts: str, matcher: str | None = None) -> Engine:
    made = Engine(clock=EventClock(0), **({} if matcher is None else {"matcher": matcher}))  # type: ignore[arg-type]
    for number, text in enumerate(texts):
        made.subscribe(text, id=str(number))
    return made


def told(made: Engine, id_: str, *events: dict[str, object]) -> list[Any]:
    notes = [
        note for time, event in enumerate(events) for note in made.publish(event, stream="stock", time=time)
    ]
    return [note.values for note in notes if note.subscription == id_]


@pytest.mark.parametrize(
    ("selected", "values"),
    [
        ("*", None),
        ("*, price * 2 as twice", {"name": "a", "price": 5, "twice": 10}),
        ("*, price * 2 as price", {"name": "a", "price": 10}),
        ("*, volume", {"name": "a", "price": 5, "volume": None}),
    ],
)
def test_a_filter_selects_everything_and_more(selected: str, values: object) -> None:
    made = engine(
        f"select {selected} from stock where price > 1", f"from stock s where s.price > 1 select {selected}"
    )
    assert told(made, "0", EVENT) == [values]
    assert told(made, "1", EVENT) == [values]


def test_a_published_event_of_one_source_keeps_its_names() -> None:
    made = engine(
        "select * from stock where price > 1 publish as big",
        "from stock s where s.price > 1 publish as aliased",
        "select *, price * 2 as twice from stock compute n = 1 publish as more",
        "select name, price from big where price = 5",
        "from aliased where price = 5 select *, name as title",
        "from more where twice = 10 and n = 1 select *",
    )
    assert told(made, "3", EVENT) == [{"name": "a", "price": 5}]
    assert told(made, "4", EVENT) == [{"name": "a", "price": 5, "title": "a"}]
    (note,) = [one for one in made.publish(EVENT, stream="stock", time=9) if one.subscription == "5"]
    assert note.events[0].attributes == {"name": "a", "price": 5, "n": 1, "twice": 10}


def test_a_sequence_in_parentheses_of_one_source_keeps_its_names() -> None:
    made = engine(
        "from (from stock where price > 1) a next stock b where b.price > a.price select a.price as was"
    )
    assert told(made, "0", EVENT, {"price": 9}) == [{"was": 5}]


def test_several_sources_are_told_apart_by_their_aliases() -> None:
    made = engine(
        "select *, b.price - a.price as rise from stock a next stock b where b.price > a.price publish as rises",
        'select * from rises where "a.price" = 5',
        "select rise from rises",
        'from (from stock a next stock b select *, b.price - a.price as rise) r next stock c where c.price > r.rise select r."a.price" as began',
    )
    notes = [
        note
        for time, price in enumerate((5, 9, 12))
        for note in made.publish({"price": price}, stream="stock", time=time)
    ]
    by_id = {id_: [note for note in notes if note.subscription == id_] for id_ in "0123"}
    assert [note.values for note in by_id["0"]] == [{"rise": 4}, {"rise": 3}]
    assert [dict(note.events[0].attributes) for note in by_id["1"]] == [
        {"a.price": 5, "b.price": 9, "rise": 4}
    ]
    assert [note.values for note in by_id["2"]] == [{"rise": 4}, {"rise": 3}]
    assert [note.values for note in by_id["3"]] == [{"began": 5}]


def test_a_view_selects_everything_and_more() -> None:
    made = Engine(clock=EventClock(0))
    made.table("stock", key="name")
    made.table("firm", key="id")
    made.publish(EVENT, stream="stock")
    made.publish({"id": "a", "city": "Ulm"}, stream="firm")
    assert made.subscribe("select *, price * 2 as twice from table stock", id="a").answer == (
        {"name": "a", "price": 5, "twice": 10},
    )
    joined = "from table stock s join table firm f on s.name = f.id"
    assert made.subscribe(f"select *, s.price * 2 as twice {joined}", id="b").answer == (
        {"s.name": "a", "s.price": 5, "f.id": "a", "f.city": "Ulm", "twice": 10},
    )
    (note,) = [
        one for one in made.publish({"name": "a", "price": 6}, stream="stock") if one.subscription == "a"
    ]
    assert note.added == ({"name": "a", "price": 6, "twice": 12},)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("select price, * from stock", "`*` stands first"),
        ("select *, * from stock", "`*` stands first"),
        ("select distinct *, x from table stock", "`select distinct` needs"),
    ],
)
def test_a_star_elsewhere_is_refused(text: str, reason: str) -> None:
    with pytest.raises(LanguageError) as refused:
        parse(text)
    assert reason in str(refused.value)


def test_a_star_beside_an_aggregate_is_refused() -> None:
    made = Engine()
    made.table("stock", key="name")
    with pytest.raises(TocsinError, match="a view has one answer"):
        made.subscribe("select *, min(price) from table stock")


def test_text_json_and_python_say_the_same() -> None:
    query = parse("select *, price * 2 as twice from stock")
    assert to_text(query) == "select *, price * 2 as twice from stock"
    form = to_json(query)
    assert form["filter"]["select"][0] == [{"all": []}, "*"]  # type: ignore[call-overload, index]
    assert from_json(form) == query
    assert (
        from_json(
            {
                "filter": {
                    "from": "stock",
                    "select": [{"all": []}, [{"*": [{"attribute": ["price"]}, 2]}, "twice"]],
                }
            }
        )
        == query
    )
    assert stream("stock").select("*", twice=attr("price") * 2).build() == query
    assert stream("stock").select("*").build() == parse("from stock")
    assert to_text(parse('select "*", price from stock')) == 'select "*", price from stock'
    with pytest.raises(TocsinError):
        from_json({">": [{"all": []}, 5]})
