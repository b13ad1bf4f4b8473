"""The sizes of a benchmark's experiments, side by side for each of its scales."""

from __future__ import annotations

from typing import Any, Final

from msgspec import defstruct

SMALL: Final = "small"
PAPER: Final = "paper"
"""The scale that targets are set for."""


def scales(**sizes: tuple[Any, Any]) -> dict[str, Any]:
    """Return the scales `small` and `paper`: structs of the named sizes, which are given for both in this order."""
    kind: Any = defstruct("Scale", [("name", str), *((field, Any) for field in sizes)], frozen=True)
    return {
        name: kind(name, *values)
        for name, values in zip((SMALL, PAPER), zip(*sizes.values(), strict=True), strict=True)
    }
