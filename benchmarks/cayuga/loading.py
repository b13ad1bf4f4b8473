"""Loading subscriptions in the ways there are: templates by the column, with and without the engine, and texts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain, islice

from benchmarks.cayuga.experiments import technical_input
from benchmarks.cayuga.session import ALL, Session
from benchmarks.cayuga.subject import Subject
from benchmarks.cayuga.workloads.rows import Rows
from tocsin.engine import Engine
from tocsin.language import to_text
from tocsin.language.template.template import bindings_at


def loading(session: Session) -> None:
    """Load subscriptions of LinearStat, and record how many a second."""
    count = session.scale.loaded
    groups = technical_input("LinearStat", count).groups

    contender = session.called("by the column")
    session.tell(contender, f"{count:,} subscriptions")
    taken = Subject(session.matcher, ALL).load(groups)
    session.record(
        "loading",
        contender,
        count,
        (taken.rate, "subscriptions/s"),
        preparing=taken.preparing,
        adding=taken.adding,
    )
    session.record("memory", contender, count, (taken.bytes_each, "bytes each"), grown_mb=taken.resident_mb)

    contender = session.called("Engine.subscribe_many")
    session.tell(contender, f"{count:,} subscriptions")
    engine = Engine(matcher=session.matcher)
    begun = time.perf_counter()
    for rows in groups:
        engine.subscribe_many(rows.template(), rows.columns)
    rate = count / (time.perf_counter() - begun)
    session.record("loading", contender, count, (rate, "subscriptions/s"))

    contender = session.called("Engine.subscribe")
    texts = list(islice(chain.from_iterable(_texts(rows) for rows in groups), session.scale.texts))
    session.tell(contender, f"{len(texts):,} subscriptions")
    engine = Engine(matcher=session.matcher)
    begun = time.perf_counter()
    for text in texts:
        engine.subscribe(text)
    rate = len(texts) / (time.perf_counter() - begun)
    session.record("loading", contender, len(texts), (rate, "subscriptions/s"))


def _texts(rows: Rows) -> Iterator[str]:
    """Return what each row says by itself."""
    template = rows.template()
    return (to_text(template.bind(bindings_at(rows.columns, row))) for row in range(len(rows)))
