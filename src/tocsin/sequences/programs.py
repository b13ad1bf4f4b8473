"""Small programs over the values of an event and of an instance, as arrays that a kernel runs.

A value is a tag and 64 bits. An operand is one integer: where a value is found, and its number there. An instruction
is four integers: what to do, and three operands. A program that is run to its end holds; a test that does not hold
goes on at the instruction that its first integer names, or ends the program where that is `FAIL`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.model.conditions import Predicate
from tocsin.model.terms import Literal, Parameter

Code: TypeAlias = NDArray[np.int32]
Column: TypeAlias = str | Predicate
"""What a program reads of an event: an attribute by its path, or the truth of a predicate that no program can tell.

Such a predicate (a pattern, a text beside a timestamp, a long list) is over attributes without an alias. Where it
holds, the column has `true`, elsewhere nothing.
"""

FAIL: Final = -1
MODE_BITS: Final = 24


class Tag(IntEnum):
    """What the 64 bits of a value are."""

    MISSING = 0
    INTEGER = 1  # of 64 bits
    FLOAT = 2  # its bits
    STRING = 3  # a code
    BOOLEAN = 4
    TIMESTAMP = 5  # microseconds
    BIG = 6  # the code of an integer of more than 64 bits
    EVENT = 7  # an event's number: what a witness is made of
    CHAIN = 8  # the last link of a chain of events


class Mode(IntEnum):
    """Where an operand is found."""

    EVENT = 0  # in the event: a column, by its number in the program's `columns`
    BOUND = 1  # in the instance: a slot
    CONSTANT = 2  # in the program's `constants`
    SCRATCH = 3  # what an instruction before has computed
    DURATION = (
        4  # end of the event - start of the instance + 1, or of the event itself where there is no instance
    )
    SELF = 5  # the event's number


class Do(IntEnum):
    """What an instruction does with its three integers a, b and c."""

    # scratch a becomes something of the operands b and c; arithmetic of anything but two numbers gives nothing
    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3
    SUM = 4  # aggregates so far: b, after one more value c
    LEAST = 5
    GREATEST = 6
    COUNT = 7
    FIRST = 8  # b if there is one, else c
    # slot a of what is made becomes b
    STORE = 9
    LINK = 10  # a chain: the event, after the chain b, or alone where b is nothing
    # tests of b and c; where they do not hold, go on at instruction a
    EQ = 11
    NE = 12
    LT = 13
    LE = 14
    GT = 15
    GE = 16
    CONTAINS = 17
    NOT_CONTAINS = 18
    STARTS_WITH = 19
    NOT_STARTS_WITH = 20
    ENDS_WITH = 21
    NOT_ENDS_WITH = 22
    PRESENT = 23  # of b alone
    MISSING = 24
    TRUE = 25  # b is the boolean true
    # go on at instruction a
    JUMP = 26


class Program(Struct, frozen=True, eq=False):
    """Instructions, and what their operands are numbers of. One without instructions always holds."""

    code: Code  # int32[instructions, 4]
    columns: tuple[Column, ...] = ()
    constants: tuple[Literal | Parameter, ...] = ()
    scratch: int = 0

    def __len__(self) -> int:
        return len(self.code)


NOTHING: Final = Program(np.empty((0, 4), dtype=np.int32))


def operand(mode: Mode, number: int = 0) -> int:
    """Return the integer that says where a value is found."""
    return (int(mode) << MODE_BITS) | number
