"""How many bytes a message has, and what a node keeps."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tocsin.model.errors import TocsinError

MOST: Final = 1_000_000
"""The bytes of a field and of a header, at the most, so that those of a run can be added up."""


class ByteModel(Struct, frozen=True):
    """The byte model: every message is a header and some fields of equal size."""

    field: int = 8
    header: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.field <= MOST and 0 <= self.header <= MOST):
            raise TocsinError(
                f"a field of {self.field} and a header of {self.header} bytes; give 1 to {MOST:,} for a field, "
                f"and 0 to {MOST:,} for a header"
            )

    def of(self, fields: int) -> int:
        """Return the bytes of a message with so many fields."""
        return self.header + self.field * fields
