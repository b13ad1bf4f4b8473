"""How long events take, by which `apublish` decides where to publish the next one."""

from __future__ import annotations

from math import inf
from typing import Final

_QUICK: Final = 0.002  # seconds that an event may keep the event loop


class Pace:
    """The time that the last events took; a slow one counts for the next few.

    >>> pace = Pace()
    >>> pace.is_quick(generation=1)
    False
    >>> pace.took(0.0001, generation=1)
    >>> pace.is_quick(generation=1), pace.is_quick(generation=2)
    (True, False)
    """

    def __init__(self) -> None:
        self._generation = -1
        self._longest = inf  # seconds

    def is_quick(self, generation: int) -> bool:
        """Tell whether an event is expected to be quick, for an engine of this generation of subscriptions."""
        # A new subscription may have something to load or to compile.
        return generation == self._generation and self._longest < _QUICK

    def took(self, seconds: float, generation: int) -> None:
        """Keep how long an event took."""
        self._longest = seconds if generation != self._generation else max(seconds, 0.8 * self._longest)
        self._generation = generation
