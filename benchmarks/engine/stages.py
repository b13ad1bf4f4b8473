"""The processor time of the stages between a file of events and its notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import wraps
from time import process_time
from typing import IO, Any, Final, TypeVar
from unittest.mock import patch

from tocsin.engine.filter_runtime import FilterRuntime
from tocsin.engine.notifications import Notifications
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.encoding.blocks import BlockEvents

Item = TypeVar("Item")

READ: Final = "read"
ENCODE: Final = "encode"
MATCH: Final = "match"
NOTIFY: Final = "notify"
REST: Final = "the rest"
_TIMED: Final[tuple[tuple[type, str, str], ...]] = (
    (ArrowEvents, "encode", ENCODE),
    (BlockEvents, "encode", ENCODE),
    (FilterRuntime, "process", MATCH),
)


class Stages(AbstractContextManager["Stages"]):
    """Times the stages while it is entered; a stage within another does not count twice."""

    def __init__(self) -> None:
        self._spent = dict.fromkeys((READ, ENCODE, MATCH, NOTIFY), 0.0)
        self._inner = [0.0]
        self._patches = ExitStack()
        self._begun = 0.0
        self._whole = 0.0

    def __enter__(self) -> Stages:
        for owner, name, stage in _TIMED:
            timed = self._timed(stage, getattr(owner, name))
            self._patches.enter_context(patch.object(owner, name, timed))
        self._begun = process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self._whole = process_time() - self._begun
        self._patches.close()

    def reading(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, and count the time that they take as reading."""
        iterator = iter(items)
        read = self._timed(READ, lambda: next(iterator, None))
        while (item := read()) is not None:
            yield item

    def write(self, notifications: Notifications, out: IO[bytes]) -> None:
        """Write notifications as lines of JSON."""
        self._timed(NOTIFY, lambda: out.writelines(notifications.json_lines()))()

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each stage, and of the rest."""
        return {**self._spent, REST: self._whole - sum(self._spent.values())}

    def _timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            begun = process_time()
            self._inner.append(0.0)
            try:
                return function(*arguments, **named)
            finally:
                seconds = process_time() - begun
                self._spent[stage] += seconds - self._inner.pop()
                self._inner[-1] += seconds

        return timed
