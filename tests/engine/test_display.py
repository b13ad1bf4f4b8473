"""What the engine and its results show of themselves, in a console and in a notebook."""

from __future__ import annotations

import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.cli.running import tocsin
from tocsin import Engine, Event, Notification
from tocsin.engine import EventClock, EventExplanation
from tocsin.engine import notifications as notifications_module

EVIL = "<script>alert('x')</script>&\"\x00\ud800"
SAFE = EVIL[:-1]  # an id and an event's text are Unicode
DAY = 86_400_000_000


class Page(HTMLParser):
    """The elements of a fragment of HTML, of which each but the empty ones must be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.images: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attrs)["src"] or "")
        else:
            self.open.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag != "img":
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def shown(of: Any) -> Page:
    html = of._repr_html_()
    assert "prefers-color-scheme:dark" in html
    return Page(html)


def evil_engine() -> Engine:
    engine = Engine(clock=EventClock(0))
    engine.table("stock", key="symbol")
    engine.subscribe(f"\"{'<b>'}\" = '<i>' or symbol = '{SAFE.replace(chr(39), chr(39) * 2)}'", id=SAFE)
    engine.subscribe("from stock a next stock b where b.symbol = '<script>' or b.price > a.price", id="<seq>")
    engine.subscribe("select max(price) from table stock where symbol != '<u>'", id="<view>")
    return engine


ROWS = [{"symbol": SAFE, "price": i, "t": i} for i in range(40)]


def test_nothing_that_comes_from_outside_becomes_a_tag() -> None:
    engine = evil_engine()
    notes = engine.publish_many(ROWS, stream="stock", time="t")
    row = {"symbol": SAFE, "price": 99}
    pages = [
        shown(notes),
        shown(engine.match(ROWS, stream="stock")),
        shown(engine.match(ROWS, top=2)),
        shown(engine.explain(SAFE, row)),
        shown(engine.explain("<seq>", row, stream="stock", time=99)),
        shown(engine.explain("<view>", row, stream="stock", time=99)),
        shown(
            engine.match_sequences(
                pa.table({"symbol": ["<a>"] * 2, "price": [1, 2], "t": [50, 51]}), stream="stock", time="t"
            )
        ),
        shown(
            engine.upsert(
                pa.table({"symbol": [f"<a>{i}" for i in range(20)], "price": list(range(100, 120))}),
                stream="stock",
            )
        ),
        shown(engine.test("symbol != '<script>'", ROWS, stream="<s>", time="t")),
    ]
    tags = {tag for page in pages for tag in page.tags}
    assert tags <= {
        "div",
        "style",
        "p",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "span",
        "ul",
        "li",
        "img",
        "details",
        "summary",
        "svg",
        "title",
        "line",
        "text",
        "g",
        "rect",
    }
    assert sum("<script>alert('x')</script>&\"" in page.text for page in pages) >= 4
    images = [image for page in pages for image in page.images]
    assert len(images) == 1
    drawing = b64decode(images[0].removeprefix("data:image/svg+xml;base64,"))
    drawn = Page(drawing.decode().replace("<?xml", "<!xml"))
    assert not {"script", "b", "u"} & set(drawn.tags)
    assert "<script>" in drawn.text


def test_tables_show_the_first_and_last_rows_and_the_count() -> None:
    engine = Engine(clock=EventClock(0))
    engine.subscribe("price >= 0", id="it")
    notes = engine.publish_many(ROWS, stream="stock", time="t")
    page = shown(notes)
    assert "40 notifications" in page.text
    assert page.tags.count("tr") == 1 + 10 + 1 + 5
    numbers = [int(text) for text in re.findall(r"price=(\d+)", page.text)]
    assert numbers == [*range(10), *range(35, 40)]
    found = shown(engine.match([{"price": i - 2} for i in range(9)]))
    assert "7 matches of 9 rows" in found.text
    assert [int(text) for text in found.texts if text.isdigit()] == list(range(2, 9))


def test_a_dry_run_is_a_chart_by_day() -> None:
    events = [{"price": i, "t": 1_767_225_600_000_000 + i * DAY // 2} for i in range(21)]
    engine = Engine()
    run = engine.test("price > 2", events, time="t")
    page = shown(run)
    assert "would have fired 18 times in 21 events" in page.text
    assert "by day" in page.text
    assert page.tags.count("rect") == 10
    assert "2026-01-02: 1 time" in page.texts
    assert "2026-01-03: 2 times" in page.texts
    engine.stream("s", tick="1 hour")
    hours = engine.test(
        "price > 0", [{"price": 1, "t": 490_000 + i} for i in range(100)], stream="s", time="t"
    )
    assert (hours.tick, hours.fired) == (3_600_000_000, 100)
    assert shown(hours).tags.count("rect") == 5
    small = engine.test("price > 0", [{"price": 1, "t": i} for i in range(50)], time="t")
    assert "by tick" in shown(small).text
    none = engine.test("price > 9", [{"price": 1}])
    assert "svg" not in shown(none).tags
    misspelt = engine.test('"<pirce>" > 9', [{"price": 1}])
    assert "no event has the attribute `<pirce>`" in shown(misspelt).text
    pairs = engine.test("from p a next p b where b.price > a.price", events, stream="p", time="t")
    assert shown(pairs).tags.count("rect") == 11


def test_representations_are_short_and_make_few_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    count = 3_000
    rows = {"p": list(range(count))}
    many = engine.subscribe_many("price >= :p", rows, id="above-{p}")
    notes = engine.publish_many([{"price": count, "text": "x" * 10_000}] * 100)
    assert len(notes) == 100 * count
    made: list[int] = []
    part = notifications_module.FilterNotifications
    original = part.notification

    def counting(self: Any, i: int) -> Notification:
        made.append(i)
        return original(self, i)

    monkeypatch.setattr(part, "notification", counting)
    texts = [repr(notes), repr(many), repr(engine), repr(engine.match([{"price": count}] * 50))]
    assert texts[0].startswith("<Notifications: 300,000; above-0 (price=3000, text='xxx")
    assert texts[1] == "<SubscribedMany: 3,000 subscriptions; above-0, above-1, above-2, …>"
    assert texts[2] == "<Engine: 3,000 subscriptions, 0 tables, 100 events, 300,000 notifications>"
    assert texts[3].startswith("<NamedMatches: 150,000 matches of 50 rows; above-0, ")
    assert all(len(text) < 300 and "\n" not in text for text in texts)
    assert len(made) < 10
    assert len(notes._repr_html_()) < 20_000
    assert len(made) < 30


def test_every_result_and_explanation_fits_a_console() -> None:
    engine = evil_engine()
    engine.publish_many(ROWS, stream="stock", time="t")
    row = {"symbol": SAFE, "price": 99}
    table = pa.table({"symbol": ["a", "b"], "price": [1, 2], "t": [50, 51]})
    results = [
        engine,
        engine.stats(),
        engine.subscribe("pric > 1", id="one"),
        engine.subscribe_all({f"i{i}": "price > 1" if i % 2 else "price >" for i in range(1000)}),
        engine.apply({f"j{i}": "price > 1" for i in range(1000)}),
        engine.match_sequences(table, stream="stock", time="t"),
        engine.upsert(table, stream="stock"),
        engine.test("price > 1", ROWS * 30, time="t"),
        engine.explain(SAFE, row),
        engine.explain("<seq>"),
        engine.explain("<view>", row, stream="stock", time=99),
        engine.publish_many([]),
        engine.match([]),
    ]
    texts = list(map(repr, results))
    for text in texts:
        assert len(text) < 1_000
        assert len(text.splitlines()) <= 5
    assert texts[3].startswith("<SubscribedAll: 500 subscriptions, 500 refused")
    assert texts[4].startswith("<Difference: 1,000 added, 0 changed, 0 removed, 0 unchanged; j0, j1, j2, …")
    assert texts[5] == "<NamedSequenceMatches: 1 sequence; <seq>>"
    assert "it matches" in texts[8]
    assert texts[9] == "<SequenceExplanation: `<seq>`, 1 node, 1 instance>"
    assert texts[11:] == ["<Notifications: 0>", "<NamedMatches: 0 matches of 0 rows>"]


def test_a_notification_shows_only_what_it_has() -> None:
    note = Notification("it", ("e",), (Event("e", {"a": 1}),), generation=3)
    assert repr(note).endswith("generation=3)")
    assert "witness" not in repr(note)


@pytest.mark.parametrize(
    ("query", "stream", "rows"),
    [
        (
            "symbol = 'IBM' and not (price > 100 or volume is present)",
            None,
            [{"symbol": "IBM", "price": 120}],
        ),
        (
            "from stock a next stock b on b.symbol = a.symbol where b.price > a.price within 1000",
            "stock",
            [{"symbol": "A", "price": p} for p in (3, 5, 4, 2)],
        ),
        (
            "select max(price) from table stock where risk < 60",
            "stock",
            [{"symbol": "A", "price": p, "risk": 1} for p in (3, 8)],
        ),
    ],
    ids=["filter", "sequence", "view"],
)
def test_the_text_of_an_explanation_is_what_the_command_line_prints(
    tmp_path: Path, query: str, stream: str | None, rows: list[dict[str, Any]]
) -> None:
    import json  # noqa: PLC0415 - used here alone

    file = tmp_path / "events.jsonl"
    file.write_text("".join(json.dumps({**row, "t": i, "id": f"e{i}"}) + "\n" for i, row in enumerate(rows)))
    engine = Engine(clock=EventClock(0))
    options: list[str] = []
    if stream is not None:
        options = ["--stream", stream, "--time-field", "t", "--id-field", "id"]
    if "table" in query:
        engine.table("stock", key="symbol")
        options += ["--table", "stock=symbol"]
    engine.subscribe(query, id="it")
    timed = [Event(f"e{i}", {**row, "t": i, "id": f"e{i}"}, stream, i, i) for i, row in enumerate(rows)]
    is_sequence = "next" in query
    engine.publish_many(timed if is_sequence else timed[:-1])
    why: EventExplanation = engine.explain("it") if is_sequence else engine.explain("it", timed[-1])
    done = tocsin("explain", query, file if stream else json.dumps(rows[0]), *options)
    assert done.stderr == ""
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    expected = str(why).splitlines()
    if is_sequence:
        printed.pop()  # how often it was completed
    if "table" in query:
        expected = [
            line.replace("its answer:", "after 1 event:").replace("the event:", "the last event:")
            for line in expected
        ]
    assert printed == expected
    assert np.mean([len(line) for line in printed]) > 5
