"""Notifications for asyncio: an iterator with a bounded buffer that threads fill."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self
from weakref import finalize, ref

from tocsin.engine.delivery import Listener
from tocsin.model import Notification
from tocsin.model.errors import TocsinError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

_log = logging.getLogger("tocsin")


class NotificationStream:
    """Iterates over the notifications of an engine from now on, in `async for`; also an asynchronous context manager.

    Publishing never waits for it. It keeps `limit` notifications that nobody has taken yet; beyond that the oldest is dropped
    and counted in `dropped`, and the log says so each time that it begins. It ends when it is closed, after the
    notifications that it still has; one that nobody refers to any more closes by itself. Several tasks may share it: each
    notification goes to one of them.
    """

    def __init__(self, limit: int, listen: Callable[[Callable[[Notification], None]], Listener]) -> None:
        if limit < 1:
            raise TocsinError(f"`limit` is how many notifications may wait, 1 or more, not {limit}")
        self.dropped = 0
        self._limit = limit
        self._buffer: deque[Notification] = deque()
        self._is_dropping = False
        self._is_closed = False
        self._waiters: deque[tuple[AbstractEventLoop, Future[None]]] = deque()
        self._lock = Lock()
        self._listener = listen(_weak_push(self))
        finalize(self, self._listener.close).atexit = False

    def __len__(self) -> int:
        return len(self._buffer)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Notification:
        from asyncio import get_running_loop  # noqa: PLC0415 - who awaits this has loaded it

        while True:
            with self._lock:
                if self._buffer:
                    self._is_dropping = False
                    return self._buffer.popleft()
                if self._is_closed:
                    raise StopAsyncIteration
                loop = get_running_loop()
                waiter = loop.create_future()
                self._waiters.append((loop, waiter))
            try:
                await waiter
            except BaseException:
                with self._lock:  # cancelled: what woke this task is for another one
                    if (loop, waiter) in self._waiters:
                        self._waiters.remove((loop, waiter))
                    elif self._buffer:
                        self._wake()
                raise

    def close(self) -> None:
        """Take no more notifications; the iteration ends after those that are there. Closing again does nothing."""
        self._listener.close()
        with self._lock:
            self._is_closed = True
            while self._waiters:
                self._wake()

    async def aclose(self) -> None:
        """Close, as `contextlib.aclosing` does."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._is_closed else ""
        return f"<NotificationStream: {len(self):,} waiting, {self.dropped:,} dropped{state}>"

    def _push(self, notification: Notification) -> None:
        """Take a notification, from whichever thread publishes."""
        with self._lock:
            if self._is_closed:
                return
            self._buffer.append(notification)
            is_first = False
            if len(self._buffer) > self._limit:
                self._buffer.popleft()
                self.dropped += 1
                is_first, self._is_dropping = not self._is_dropping, True
            self._wake()
        if is_first:
            _log.warning(
                "a stream of notifications is not read as fast as events are published: of more than %d that wait, the "
                "oldest are dropped, and counted in its `dropped`; read faster, or give a larger `limit`",
                self._limit,
            )

    def _wake(self) -> None:
        """Let one waiting task go on; called under the lock."""
        while self._waiters:
            loop, waiter = self._waiters.popleft()
            try:
                loop.call_soon_threadsafe(_finish, waiter)
            except RuntimeError:  # its event loop is closed, and the task with it
                continue
            return


def _weak_push(stream: NotificationStream) -> Callable[[Notification], None]:
    """Return a function that gives notifications to a stream for as long as somebody refers to it."""
    to = ref(stream)

    def push(notification: Notification) -> None:
        found = to()
        if found is not None:
            found._push(notification)  # noqa: SLF001 - of this module

    return push


def _finish(waiter: Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
