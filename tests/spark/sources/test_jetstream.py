"""A range of a stream is read whole, whatever is missing in it, and without waiting."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from nats.js import JetStreamContext
from nats.js.api import RetentionPolicy

from tocsin.model.errors import SparkError
from tocsin.spark.sources import jetstream
from tocsin.spark.sources.jetstream import ConnectionSettings, SequenceRange, StreamConnection

from .conftest import Server, Stream


def link_to(stream: Stream, *subjects: str, timeout: float = 5.0) -> StreamConnection:
    return StreamConnection(
        ConnectionSettings(
            (stream.server.url,), stream.name, tuple(f"{stream.name}.{s}" for s in subjects), timeout=timeout
        )
    )


def numbers(link: StreamConnection, first: int, end: int, *, strict: bool = True) -> list[int]:
    return [message.sequence for some in link.read(first, end, strict=strict) for message in some]


def test_a_range_is_read_in_order(stream: Stream) -> None:
    stream.publish(*range(20))
    with link_to(stream) as link:
        assert link.span() == SequenceRange(1, 21)
        assert numbers(link, 1, 21) == list(range(1, 21))
        assert numbers(link, 5, 8) == [5, 6, 7]
        assert numbers(link, 8, 8) == []
    assert stream.consumers() == 0


def test_a_message_is_all_there(stream: Stream) -> None:
    before = time.time()
    stream.publish("body", headers={"kind": "greeting", "Status": "404"})
    stream.publish("")
    with link_to(stream) as link:
        ((first, second),) = link.read(1, 3)
    assert (first.subject, first.payload) == (f"{stream.name}.a", b"body")
    assert first.headers == {"kind": "greeting", "Status": "404"}
    assert before - 1 < first.time / 1e6 < time.time() + 1
    assert (second.headers, second.payload) == (None, b"")


def test_more_than_one_request(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetstream, "_BATCH", 7)
    stream.publish(*range(50))
    stream.delete(7, 8, 9, 50)
    with link_to(stream) as link:
        assert numbers(link, 1, 51) == [n for n in range(1, 50) if n not in {7, 8, 9}]


def test_more_bytes_than_one_request_may_have(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetstream, "_BYTES", 3000)
    stream.publish("x" * 1000, "y" * 1000, "z" * 9000, "x" * 1000, "y" * 1000, "y" * 1000)
    with link_to(stream) as link:
        assert numbers(link, 1, 7) == [1, 2, 3, 4, 5, 6]


def test_gaps_at_either_end_and_all_over_cost_no_waiting(stream: Stream) -> None:
    stream.publish(*range(10))
    stream.delete(4, 5, 6, 9, 10)
    with link_to(stream, timeout=30) as link:
        begin = time.monotonic()
        assert numbers(link, 4, 7) == []
        assert numbers(link, 2, 11) == [2, 3, 7, 8]
        assert numbers(link, 9, 11) == []
        assert time.monotonic() - begin < 5


def test_subjects_are_filtered(stream: Stream) -> None:
    for to in "abcabcab":
        stream.publish("x", to=to)
    with link_to(stream, "a") as link:
        assert numbers(link, 1, 9) == [1, 4, 7]
        assert (link.count_from(1), link.count_from(2), link.count_from(8)) == (3, 2, 0)
        assert (link.following(1), link.following(2), link.following(8)) == (1, 4, None)
    with link_to(stream, "a", "c") as link:
        assert numbers(link, 2, 8) == [3, 4, 6, 7]
        assert (link.count_from(2), link.following(5), link.following(8)) == (4, 6, None)
    with link_to(stream, "never") as link:
        assert numbers(link, 1, 9) == []


def test_messages_lost_before_they_were_read(stream: Stream) -> None:
    stream.publish(*range(10))
    stream.purge(seq=6)
    with link_to(stream) as link:
        with pytest.raises(SparkError, match=r"no longer holds messages 3 to 5, which were still to be read"):
            numbers(link, 3, 11)
        with pytest.raises(SparkError, match="no longer holds messages 1 to 3"):
            numbers(link, 1, 4)
        assert numbers(link, 3, 11, strict=False) == [6, 7, 8, 9, 10]
        assert numbers(link, 6, 11) == [6, 7, 8, 9, 10]


def test_messages_that_leave_after_they_were_read_are_not_lost(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream, "_BATCH", 4)
    stream.publish(*range(10))
    with link_to(stream) as link:
        reading = link.read(1, 11)
        assert [message.sequence for message in next(reading)] == [1, 2, 3, 4]
        stream.purge(seq=5)
        assert [message.sequence for message in next(reading)] == [5, 6, 7, 8]
        stream.purge(seq=10)
        with pytest.raises(SparkError, match="no longer holds messages 9 to 9"):
            next(reading)


def test_a_consumer_that_the_server_removed_is_created_again(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jetstream, "_BATCH", 4)
    stream.publish(*range(10))

    async def remove(js: JetStreamContext) -> None:
        for consumer in await js.consumers_info(stream.name):
            await js.delete_consumer(stream.name, consumer.name)

    with link_to(stream) as link:
        reading = link.read(1, 11)
        next(reading)
        stream.do(remove)
        assert [message.sequence for some in reading for message in some] == [5, 6, 7, 8, 9, 10]


def test_a_work_queue_is_refused(server: Server) -> None:
    stream = Stream(server, "queue", retention=RetentionPolicy.WORK_QUEUE)
    with (
        link_to(stream) as link,
        pytest.raises(SparkError, match=r"make a mirror of it whose retention is `limits`"),
    ):
        link.span()


def test_missing_streams_and_servers_are_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        StreamConnection(ConnectionSettings((server.url,), "missing")) as link,
        pytest.raises(SparkError, match=rf"stream `missing` at {server.url}: stream not found"),
    ):
        link.span()
    with pytest.raises(SparkError, match=r"stream `any` at nats://127.0.0.1:1: .*Connect call failed"):
        StreamConnection(ConnectionSettings(("nats://127.0.0.1:1",), "any", timeout=5))
    monkeypatch.setitem(sys.modules, "nkeys", None)
    with pytest.raises(SparkError, match=r"pip install 'nats-py\[nkeys\]'"):
        StreamConnection(ConnectionSettings((server.url,), "any", credentials="some.creds"))


def test_a_server_that_goes_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetstream, "_BATCH", 4)
    server = Server(tmp_path / "nats")
    try:
        stream = Stream(server, "short")
        stream.publish(*range(10))
        with link_to(stream) as link:
            reading = link.read(1, 11)
            next(reading)
            server.stop()
            begin = time.monotonic()
            with pytest.raises(SparkError, match=rf"stream `short` at {server.url}: "):
                next(reading)
            assert time.monotonic() - begin < 5
            assert link.is_closed
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("flags", "right", "wrong"),
    [
        (
            ("--user", "ann", "--pass", "s3cret"),
            {"user": "ann", "password": "s3cret"},
            {"user": "ann", "password": "gu3ss"},
        ),
        (("--auth", "s3cret"), {"token": "s3cret"}, {"token": "gu3ss"}),
    ],
)
def test_secrets_open_doors_and_are_not_shown(
    tmp_path: Path, flags: tuple[str, ...], right: dict[str, str], wrong: dict[str, str]
) -> None:
    server = Server(tmp_path / "nats", *flags)
    try:
        with StreamConnection(ConnectionSettings((server.url,), "any", **right)) as link:  # type: ignore[arg-type]
            assert not link.is_closed
        with pytest.raises(SparkError, match="Authorization Violation") as caught:
            StreamConnection(ConnectionSettings((server.url,), "any", **wrong))  # type: ignore[arg-type]
        assert "gu3ss" not in str(caught.value)
    finally:
        server.stop()


def test_an_address_is_shown_without_its_secrets() -> None:
    access = ConnectionSettings(
        ("nats://ann:s3cret@one:4222", "tls://two"),
        "s",
        password="s3cret",  # noqa: S106
        token="t0ken",  # noqa: S106
    )
    assert str(access) == repr(access) == "stream `s` at nats://one:4222, tls://two"


def test_a_missing_client_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(SparkError, match=r"pip install '.*\[nats\]'"):
        StreamConnection(ConnectionSettings(("nats://127.0.0.1:1",), "any"))
