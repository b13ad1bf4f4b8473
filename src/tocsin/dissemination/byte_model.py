"""The byte model: the sizes of messages and of stored rows."""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.model.errors import TocsinError

MAX_BYTES: Final = 1_000_000
"""The most bytes of a field or a header: the bytes of a whole run then fit into 64 bits."""

ROW_FIELDS: Final = 3
"""The fields of a row: its id, x and y."""

Fields = TypeVar("Fields", int, NDArray[np.int64])


class ByteModel(Struct, frozen=True):
    """A message is a header and fields of equal size. The paper gives no sizes; 8-byte fields are our choice."""

    field: int = 8
    header: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.field <= MAX_BYTES and 0 <= self.header <= MAX_BYTES):
            raise TocsinError(
                f"a field of {self.field} and a header of {self.header} bytes; give 1 to {MAX_BYTES:,} for a field, "
                f"and 0 to {MAX_BYTES:,} for a header"
            )

    def of(self, fields: Fields) -> Fields:
        """Return the bytes of a message, or of each message of a column, with so many fields."""
        return self.header + self.field * fields
