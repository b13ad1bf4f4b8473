"""What every format gives: records with their places, or what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct


class Broken(Struct, frozen=True):
    """A record that cannot be read, and why."""

    reason: str


Records: TypeAlias = Iterator[tuple[int, Mapping[str, object] | Broken]]
"""Line or row numbers, from 1, each with its record."""
