"""Callbacks that notifications are given to, outside the engine's lock and in the engine's order."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from inspect import iscoroutinefunction
from threading import Condition, Lock, RLock
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias

import numpy as np
from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.model import Notification
from tocsin.model.errors import TocsinError
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.growth import grown
from tocsin.structures.interning import InterningTable
from tocsin.subscriptions.registry import SubscriptionRegistry

if TYPE_CHECKING:
    from tocsin.engine.notifications import Notifications

Callback: TypeAlias = Callable[[Notification], object]
_Calls: TypeAlias = Iterator[tuple[Callback, Notification]]

_NONE: Final = -1
_log = logging.getLogger("tocsin")


class Listener:
    """A callback for all notifications of an engine, until it is closed; also a context manager."""

    def __init__(self, callback: Callback) -> None:
        self.callback = callback
        self.is_open = True

    def close(self) -> None:
        """Call the callback no more; a call that another thread has begun goes on. Closing again does nothing."""
        self.is_open = (
            False  # no lock is taken: a stream that nobody holds any more is closed by the garbage collector
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Listener {self.callback!r}{'' if self.is_open else ', closed'}>"


class _Columns(NamedTuple):
    code: Int32s  # [number] of the callback, or _NONE
    since: Int64s  # [number] the generation that the subscription came with


class _Own(Struct, eq=False, frozen=True):
    """The callback that some subscriptions came with; two are never the same one."""

    callback: Callback


class _Addressee(NamedTuple):
    """The subscription of a notification, if it had a callback when the notification was made."""

    number: int
    code: int
    callback: Callback


class Deliveries:
    """Gives notifications to the callbacks of their subscriptions, and to those of the engine.

    Notifications are offered under the engine's lock, which fixes their order, and given to callbacks by `run` after it is
    released. One thread at a time runs: it also gives out what other threads offer meanwhile, and what the callbacks
    themselves cause. So callbacks are never called at the same time or inside one another, and none waits for another
    thread.

    A callback of a subscription is stored by the subscription's number, with the generation that it came with: a number is
    given again, and a notification of an earlier subscription is not for a later one.
    """

    def __init__(self, registry: SubscriptionRegistry) -> None:
        self.is_wanted = False  # whether there is any callback: engines without one pay for this test alone
        self.waiting: deque[_Calls] = deque()  # those of one offer each
        self._registry = registry
        self._listeners: tuple[Listener, ...] = ()  # replaced, never changed
        self._callbacks: InterningTable[_Own] = InterningTable()
        self._columns = _Columns(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64))
        self.count = 0  # subscriptions with a callback
        self._turn = Lock()

    @property
    def listeners(self) -> int:
        """Return how many callbacks get all notifications."""
        return sum(listener.is_open for listener in self._listeners)

    # who gets notifications; called under the engine's lock

    def listen(self, callback: Callback) -> Listener:
        """Call `callback` with all notifications from now on."""
        listener = Listener(check_callback(callback))
        self._listeners += (listener,)
        self.is_wanted = True
        return listener

    def add(self, numbers: IdArray, callback: Callback, generation: int) -> None:
        """Set the callback of subscriptions that came with `generation`, in place of any earlier one."""
        if not len(numbers):
            return
        known = len(self._columns.code)
        if (needed := int(numbers.max()) + 1) > known:
            self._columns = grown(self._columns, _Columns._fields, needed)
            self._columns.code[known:] = _NONE
        self.remove(numbers)
        self._columns.since[numbers] = generation
        self._columns.code[numbers] = self._callbacks.acquire(_Own(callback), len(numbers))
        self.count += len(numbers)
        self.is_wanted = True

    def remove(self, numbers: IdArray) -> None:
        """Forget the callbacks of subscriptions; those that have none are passed over."""
        if not self.count:
            return
        known = numbers[numbers < len(self._columns.code)]
        own = known[self._columns.code[known] != _NONE]
        self._callbacks.release(self._columns.code[own].astype(np.int64))
        self._columns.code[own] = _NONE
        self.count -= len(own)
        self.is_wanted = bool(self._listeners) or self.count > 0

    # notifications

    def offer(self, notifications: Notifications | Sequence[Notification]) -> None:
        """Take notifications for the callbacks that want them; called under the engine's lock.

        They are made objects here, because a row of a table becomes an event only once, and not in two threads.
        """
        self._listeners = tuple(one for one in self._listeners if one.is_open)
        self.is_wanted = bool(self._listeners) or self.count > 0
        if not self.is_wanted or not len(notifications):
            return
        taken: list[tuple[Notification, _Addressee | None]] = []
        if not self.count:
            taken = [(notification, None) for notification in notifications]
        else:
            addressees = list(map(self._addressee, _subscriptions(notifications)))
            if self._listeners:
                taken = list(zip(notifications, addressees, strict=True))
            else:
                taken = [(notifications[i], one) for i, one in enumerate(addressees) if one is not None]
        if taken:
            self.waiting.append(self._calls(taken, self._listeners))

    def run(self, lock: RLock) -> None:
        """Call the callbacks; called after the engine's lock is released. What a callback raises is logged.

        Inside a callback, or a call that holds the lock, nothing is done: whoever is further up goes on.
        """
        if _is_held(lock):
            return
        # Who finds the turn taken leaves its notifications to the one who has it, who looks again after giving it back.
        while self.waiting and self._turn.acquire(blocking=False):
            try:
                while self.waiting:
                    self._deliver(self.waiting[0])
                    self.waiting.popleft()
            finally:  # after an interrupt, the next call goes on where this one was
                self._turn.release()

    def _deliver(self, calls: _Calls) -> None:
        for callback, notification in calls:
            try:
                callback(notification)
            except Exception:  # noqa: BLE001 - whatever it is, the others are called
                _log.exception(
                    "a callback raised, and the others are called: %r, for a notification of subscription `%s`",
                    callback,
                    notification.subscription,
                )

    def _calls(
        self, taken: Sequence[tuple[Notification, _Addressee | None]], listeners: Sequence[Listener]
    ) -> _Calls:
        """Yield the callbacks to call with each notification: its subscription's, then the engine's in their order."""
        for notification, addressee in taken:
            if addressee is not None and self._is_current(addressee, notification.generation):
                yield addressee.callback, notification
            for listener in listeners:
                if listener.is_open:
                    yield listener.callback, notification

    def _addressee(self, id_: str) -> _Addressee | None:
        number = self._registry.number(id_)
        codes = self._columns.code
        if number >= len(codes) or (code := codes.item(number)) == _NONE:
            return None
        return _Addressee(number, code, self._callbacks.value(code).callback)

    def _is_current(self, addressee: _Addressee, generation: int) -> bool:
        """Tell whether a subscription still has the callback that it had; other threads may change it meanwhile."""
        code, since = self._columns
        return since.item(addressee.number) <= generation and code.item(addressee.number) == addressee.code


def check_callback(callback: Callback) -> Callback:
    """Return a callback, or raise `TocsinError` if it cannot be called with a notification."""
    if not callable(callback):
        raise TocsinError(
            f"a callback is a function that takes a notification, not {type(callback).__name__}"
        )
    if iscoroutinefunction(callback):
        raise TocsinError(
            "a callback is a plain function, and nobody would await this coroutine; use "
            "`async for note in engine.notifications()`, or start a task in the callback"
        )
    return callback


def _subscriptions(notifications: Notifications | Sequence[Notification]) -> list[str]:
    """Return the id of each notification's subscription; columns make no object for it."""
    from tocsin.engine.notifications import Notifications  # noqa: PLC0415 - it would be a cycle

    if isinstance(notifications, Notifications):
        return notifications.subscriptions()
    return [note.subscription for note in notifications]


def _is_held(lock: RLock) -> bool:
    """Tell whether this thread holds a lock; a condition refuses to notify if it does not."""
    try:
        Condition(lock).notify()  # nobody waits
    except RuntimeError:
        return False
    return True
