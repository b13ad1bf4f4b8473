"""How many bytes a message has, and what a node keeps."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Sizes"]


class Sizes(Struct, frozen=True):
    """The byte model: every message is a header and some fields of equal size."""

    field: int = 8
    header: int = 0

    def of(self, fields: int) -> int:
        """Return the bytes of a message with so many fields."""
        return self.header + self.field * fields
