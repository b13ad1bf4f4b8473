"""Reading a JetStream stream by sequence numbers: exactly the messages of a range, and never waiting for one.

A range is read through a short-lived consumer. The consumer says how many messages it still has, so the end of a
range is known without waiting, however many of its numbers were deleted or belong to other subjects. A consumer may
live on a server that is behind the stream's leader, so the leader confirms the end of a range.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from tocsin.model.errors import SparkError
from tocsin.model.installation import install_hint

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

_Result = TypeVar("_Result")
_BATCH: Final = 5_000  # messages of one request,
_BYTES: Final = 32 << 20  # and their bytes
_LIFE: Final = 300.0  # seconds after which the server removes an unused consumer


class ConnectionSettings(Struct, frozen=True):
    """How to connect to a stream. Its secrets are never shown."""

    servers: tuple[str, ...]
    stream: str
    subjects: tuple[str, ...] = ()
    user: str | None = None
    password: str | None = None
    token: str | None = None
    credentials: str | None = None
    tls: bool = False
    tls_ca: str | None = None
    timeout: float = 10.0

    def __str__(self) -> str:
        places = (urlsplit(server if "//" in server else f"nats://{server}") for server in self.servers)
        named = ", ".join(f"{p.scheme}://{p.hostname}{f':{p.port}' if p.port else ''}" for p in places)
        return f"stream `{self.stream}` at {named}"

    __repr__ = __str__


class SequenceRange(NamedTuple):
    """The sequence numbers of a stream's messages, from `first` to before `end`. Some may be deleted."""

    first: int
    end: int


class Message(NamedTuple):
    """A message of a stream; `time` is when the stream stored it, in microseconds since 1970."""

    sequence: int
    time: int
    subject: str
    headers: dict[str, str] | None
    payload: bytes


class StreamConnection:
    """A connection to a stream's server. Its own thread keeps it alive while the caller is busy."""

    def __init__(self, access: ConnectionSettings) -> None:
        try:
            import nats  # noqa: F401, PLC0415 - part of an extra
        except ImportError as fault:
            raise SparkError(
                f"nats-py is not installed ({fault}); install it with {install_hint('nats')}"
            ) from fault
        self._access = access
        self._fault: Exception | None = None  # the last error that the client reported
        self._consumers: set[_Consumer] = set()  # to notify when the connection is lost
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._client = self._run(self._connect())
        except BaseException:
            self._end_loop()
            raise
        self._stream: JetStreamContext = self._client.jetstream(timeout=access.timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_closed(self) -> bool:
        """Return whether the connection is lost; a new one is needed then."""
        return self._client.is_closed

    def close(self) -> None:
        """Close the connection, and end its thread."""
        with suppress(SparkError):
            self._run(self._client.close())
        self._end_loop()

    def span(self) -> SequenceRange:
        """Return the stream's present range, as its leader knows it."""
        return self._run(self._span())

    def following(self, sequence: int) -> int | None:
        """Return the number of the first message at or after `sequence` on our subjects, None if there is none yet."""
        return self._run(self._following(sequence))

    def count_from(self, sequence: int) -> int:
        """Return how many messages on our subjects the stream holds at and after `sequence`."""

        async def pending_from() -> int:
            consumer = await self._open(sequence)
            await self._close(consumer)
            return consumer.pending  # a new consumer reports how many messages are before it

        return self._run(pending_from())

    def read(self, first: int, end: int, *, strict: bool = True) -> Iterator[list[Message]]:
        """Yield the messages on our subjects from `first` up to, but not with, `end`, in order, some at a time.

        If `strict`, raise `SparkError` when the stream may have dropped some of them before they were read.
        """
        consumer: _Consumer | None = None
        patience = time.monotonic() + self._access.timeout
        try:
            while first < end:
                if consumer is None:
                    consumer = self._run(self._open(first))
                messages = self._run(consumer.fetch(end - first))
                if not messages and self._is_at_end(first, end):
                    self._check_kept(first, end, messages, strict=strict)
                    break
                if messages:
                    reached = messages[-1].sequence + 1
                    self._check_kept(first, min(reached, end), messages, strict=strict)
                    yield [message for message in messages if message.sequence < end]
                    first = reached
                    patience = time.monotonic() + self._access.timeout
                else:  # the consumer is gone, or its server is behind the leader: try another
                    if time.monotonic() > patience:
                        reason = f"message {first} or a later one is there, but not given"
                        raise SparkError(f"{self._access}: {reason}")
                    self._run(self._close(consumer))
                    consumer = None
                    time.sleep(0.05)
        finally:
            if consumer is not None:
                self._run(self._close(consumer))

    def _is_at_end(self, first: int, end: int) -> bool:
        following = self.following(first)
        return following is None or following >= end

    def _check_kept(self, first: int, end: int, messages: list[Message], *, strict: bool) -> None:
        """Raise `SparkError` if the stream has dropped messages of this range before they were read."""
        if not strict:
            return
        kept_from = min(self.span().first, end)
        read = sum(message.sequence < kept_from for message in messages)
        if kept_from - first > read:
            raise SparkError(loss_message(self._access, first, kept_from))

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Run `work` on the connection's thread and return its result; errors are raised with the server's name."""
        from nats.errors import Error, NoServersError  # noqa: PLC0415
        from nats.js.errors import APIError, ServiceUnavailableError  # noqa: PLC0415

        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except ServiceUnavailableError:
            reason = "no JetStream answers there"
        except APIError as fault:
            reason = fault.description or str(fault)
        except ImportError as fault:
            reason = f"`credentials` need another package ({fault}): `pip install 'nats-py[nkeys]'`"
        except (Error, OSError, TimeoutError) as fault:
            cause = self._fault if isinstance(fault, NoServersError) and self._fault else fault
            reason = str(cause).removeprefix("nats: ") or "no answer in time"
        raise SparkError(f"{self._access}: {reason}")

    async def _connect(self) -> Client:
        """Return a connected client; when its connection closes, all consumers give up."""
        from nats.aio.client import Client  # noqa: PLC0415

        async def note(fault: Exception) -> None:
            self._fault = fault

        async def tell() -> None:
            for consumer in self._consumers:
                consumer.give_up()

        access = self._access
        context = ssl.create_default_context(cafile=access.tls_ca) if access.tls or access.tls_ca else None
        client = Client()
        connecting = client.connect(
            list(access.servers),
            name="tocsin",
            user=access.user,
            password=access.password,
            token=access.token,
            user_credentials=access.credentials,
            tls=context,
            connect_timeout=int(max(access.timeout, 1)),
            # The caller opens another connection; a client that reconnects by itself would hide lost messages.
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            error_cb=note,
            closed_cb=tell,
        )
        try:
            await asyncio.wait_for(connecting, access.timeout)
        except BaseException:
            with suppress(AssertionError):  # it was not open yet
                await client.close()
            raise
        return client

    async def _span(self) -> SequenceRange:
        """Return the sequence numbers that the stream has now; raise `SparkError` if reading consumes them."""
        from nats.js.api import RetentionPolicy  # noqa: PLC0415

        info = await self._stream.stream_info(self._access.stream)
        if info.config.retention not in {None, RetentionPolicy.LIMITS}:
            raise SparkError(
                f"{self._access} lets go of a message once it was consumed, so a batch could not be read again: "
                "make a mirror of it whose retention is `limits`, and read that"
            )
        return SequenceRange(max(info.state.first_seq, 1), info.state.last_seq + 1)

    async def _following(self, sequence: int) -> int | None:
        """Return the first sequence number on our subjects from `sequence` on; None if there is none."""
        from nats.js.errors import NotFoundError  # noqa: PLC0415

        found = []
        for subject in self._access.subjects or (">",):
            try:
                of = self._access.stream
                message = await self._stream.get_msg(of, seq=sequence, subject=subject, next=True)
            except NotFoundError as fault:
                if fault.err_code != 10037:  # no message found
                    raise
            else:
                found.append(message.seq or 0)
        return min(found, default=None)

    async def _open(self, first: int) -> _Consumer:
        """Return a new consumer from `first` on, without acknowledgements, that expires by itself."""
        from nats.js import api  # noqa: PLC0415

        subjects = self._access.subjects
        info = await self._stream.add_consumer(
            self._access.stream,
            api.ConsumerConfig(
                deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=first,
                ack_policy=api.AckPolicy.NONE,
                filter_subject=subjects[0] if len(subjects) == 1 else None,
                filter_subjects=list(subjects) if len(subjects) > 1 else None,
                inactive_threshold=_LIFE,
                mem_storage=True,
                num_replicas=1,
            ),
        )
        consumer = _Consumer(self._client, self._access, info.name, info.num_pending or 0)
        self._consumers.add(consumer)
        await consumer.listen()
        return consumer

    async def _close(self, consumer: _Consumer) -> None:
        """Remove a consumer from the server; if that fails, the server removes it when it has been idle."""
        from nats.errors import Error  # noqa: PLC0415

        self._consumers.discard(consumer)
        with suppress(Error, OSError, TimeoutError):
            await consumer.stop()
            await self._stream.delete_consumer(self._access.stream, consumer.name)

    def _end_loop(self) -> None:
        """Cancel all tasks, and end the event loop and its thread."""

        async def finish() -> None:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(finish(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def loss_message(access: ConnectionSettings, first: int, end: int) -> str:
    """Return the error message for unread messages that have left the stream."""
    return (
        f"{access} no longer holds messages {first} to {end - 1}, which were still to be read: they are lost. "
        "Let the stream keep messages for longer; to go on without them, set `failOnDataLoss` to false"
    )


class _Consumer:
    """A pull consumer on the server."""

    def __init__(self, client: Client, access: ConnectionSettings, name: str, pending: int) -> None:
        self.name = name
        self.pending = pending  # messages still to deliver
        self._client = client
        self._access = access
        self._given = 0
        self._arrived: list[Message] = []
        self._wanted = 0
        self._status = ""
        self._done = asyncio.Event()
        self._inbox = client.new_inbox()
        self._subscription: Any = None

    async def listen(self) -> None:
        """Subscribe to the inbox; the server sends only requested messages, so nothing need be dropped."""
        self._subscription = await self._client.subscribe(
            self._inbox, cb=self._take, pending_msgs_limit=0, pending_bytes_limit=0
        )

    async def fetch(self, most: int) -> list[Message]:
        """Return the next messages, at most `most`; none if there are none now, or if the consumer is gone."""
        self._wanted = min(most, self.pending, _BATCH)
        if not self._wanted:
            return []
        await self._ask(max_bytes=_BYTES)
        if not self._arrived and "MaxBytes" in self._status:
            self._wanted = 1
            await self._ask()
        if len(self._arrived) < self._wanted and "MaxBytes" not in self._status:
            self.pending = 0  # as far as it knows
        return self._arrived

    async def stop(self) -> None:
        """Unsubscribe from the inbox."""
        await self._subscription.unsubscribe()

    def give_up(self) -> None:
        """Stop waiting: the connection is lost."""
        self._done.set()

    async def _ask(self, **more: int) -> None:
        """Request the wanted messages, and wait for them or for the server's status that there are no more."""
        from nats.errors import ConnectionClosedError  # noqa: PLC0415

        self._arrived = []
        self._status = ""
        self._done.clear()
        request = json.dumps({"batch": self._wanted, "no_wait": True, **more}).encode()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._access.stream}.{self.name}"
        await self._client.publish(subject, request, reply=self._inbox)
        before = -1
        while not self._done.is_set():
            if len(self._arrived) == before:
                raise TimeoutError(f"no answer within {self._access.timeout:g} s")
            before = len(self._arrived)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._done.wait(), self._access.timeout)
        if self._client.is_closed:
            raise ConnectionClosedError

    async def _take(self, message: Msg) -> None:
        """Store a message that arrived, or the status that ends the fetch."""
        if not message.reply:  # not a message of the stream, but a status of the server
            headers = message.headers or {}
            self._status = f"{headers.get('Status', '')} {headers.get('Description', '')}"
            self._done.set()
            return
        # $JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<given>.<time>.<pending>; two names more in a domain.
        fields = message.reply.split(".")
        at = 5 if len(fields) == 9 else 7
        sequence, given, nanoseconds, pending = (int(field) for field in fields[at : at + 4])
        if given != self._given + 1:
            self._status = f"message {self._given + 1} of consumer {self.name} went astray"
            self._done.set()
            return
        self._given = given
        self.pending = pending
        content = message.subject, message.headers, message.data
        self._arrived.append(Message(sequence, nanoseconds // 1000, *content))
        if len(self._arrived) == self._wanted:
            self._done.set()
