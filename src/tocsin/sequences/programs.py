"""Small programs over the values of an event and of an instance, as arrays that a kernel runs.

A value is a tag and 64 bits. An operand is one integer: a mode and a number. An instruction is four integers: the
operation and its three integers. A program holds if it runs to its end. A failed test continues at the instruction that
its first integer names; `FAIL` ends the program.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct

from tocsin.model.conditions import Predicate
from tocsin.model.terms import Literal, Parameter
from tocsin.sequences._kernels.instructions import MODE_BITS, Mode
from tocsin.structures.array_types import Int32s

Code: TypeAlias = Int32s
Column: TypeAlias = str | Predicate
"""A column that a program reads of an event: an attribute by its path, or the truth of a residual predicate.

A residual predicate (a pattern, a text beside a timestamp, a long list) is over attributes without an alias. Where it
holds, the column has `true`, elsewhere MISSING.
"""


class Program(Struct, frozen=True, eq=False):
    """Instructions, and the columns and constants that operands number. One without instructions always holds."""

    code: Code  # int32[instructions, 4]
    columns: tuple[Column, ...] = ()
    constants: tuple[Literal | Parameter, ...] = ()
    scratch: int = 0

    def __len__(self) -> int:
        return len(self.code)


NOTHING: Final = Program(np.empty((0, 4), dtype=np.int32))


def operand(mode: Mode, number: int = 0) -> int:
    """Return an operand."""
    return (int(mode) << MODE_BITS) | number
