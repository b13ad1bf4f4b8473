"""A strategy that is none of the six, as somebody may enter one."""

from __future__ import annotations

from typing import ClassVar, Final

from tocsin.dissemination.strategies.strategy import Strategy
from tocsin.dissemination.strategies.unicast import Unicast

__all__ = ["STRATEGY"]


class Own(Unicast):
    """Does what S-UN does, by another name."""

    name: ClassVar[str] = "OWN"


STRATEGY: Final[type[Strategy]] = Own
