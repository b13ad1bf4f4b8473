"""A strategy that is none of the six, as somebody may enter one."""

from __future__ import annotations

from typing import ClassVar

from tocsin.dissemination.strategies.s_un import ServerUnicast


class Own(ServerUnicast):
    """Does what S-UN does, by another name."""

    name: ClassVar[str] = "OWN"
