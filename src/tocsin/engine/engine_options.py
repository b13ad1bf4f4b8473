"""The options of an engine that are plain data, and are saved with it."""

from __future__ import annotations

from msgspec import Struct


class EngineOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `Engine` that are numbers and names."""

    matcher: str | None = None
    lateness: int = 0
    out_of_orderness: int = 0
    memory_limit: int | None = None
    view_matcher: str | None = None
