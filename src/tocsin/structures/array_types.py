"""Types of arrays by their elements, and columns of them; a comment beside each field says what its dimensions are."""

from __future__ import annotations

from typing import Any, Final, ForwardRef, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Int64s: TypeAlias = NDArray[np.int64]
Int32s: TypeAlias = NDArray[np.int32]
UInt64s: TypeAlias = NDArray[np.uint64]
UInt16s: TypeAlias = NDArray[np.uint16]
UInt8s: TypeAlias = NDArray[np.uint8]
Float64s: TypeAlias = NDArray[np.float64]
Float32s: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]

_DTYPES: Final = {
    "Int64s": np.int64,
    "Int32s": np.int32,
    "UInt64s": np.uint64,
    "UInt16s": np.uint16,
    "UInt8s": np.uint8,
    "Float64s": np.float64,
    "Float32s": np.float32,
    "Bools": np.bool_,
    "Keys": np.int64,
}
Columns = TypeVar("Columns", bound=tuple[Any, ...])


def zeros(kind: type[Columns], length: int, **fields: Any) -> Columns:
    """Return a named tuple of columns of one length, all zero, of the types that its fields are annotated with.

    An integer in `fields` makes a column with so many elements in each row; any other value becomes the field itself.
    """

    def field(name: str, annotation: ForwardRef) -> Any:
        value = fields.get(name)
        if value is None or isinstance(value, int):
            shape = length if value is None else (length, value)
            return np.zeros(shape, dtype=_DTYPES[annotation.__forward_arg__])
        return value

    return kind(*(field(name, annotation) for name, annotation in kind.__annotations__.items()))
