"""The instruction set of programs: tags of values, modes of operands, operations."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

FAIL: Final = -1
MODE_BITS: Final = 24


class Tag(IntEnum):
    """The meaning of the 64 bits of a value."""

    MISSING = 0
    INTEGER = 1  # of 64 bits
    FLOAT = 2  # its bits
    STRING = 3  # a code
    BOOLEAN = 4
    TIMESTAMP = 5  # microseconds
    BIG = 6  # the code of an integer of more than 64 bits
    EVENT = 7  # an event's number, for the steps of a match
    CHAIN = 8  # the last link of a chain of events
    OPAQUE = 9  # the code of a type; no two such values can be compared


class Mode(IntEnum):
    """Where an operand is found."""

    EVENT = 0  # in the event: a column, by its number in the program's `columns`
    BOUND = 1  # in the instance: a slot
    CONSTANT = 2  # in the program's `constants`
    SCRATCH = 3  # the result of an earlier instruction
    DURATION = 4  # end of the event - start of the instance (or else of the event) + 1
    SELF = 5  # the event's number


class Do(IntEnum):
    """The operation of an instruction on its three integers a, b and c."""

    # scratch a becomes a result of the operands b and c; arithmetic of anything but two numbers gives MISSING
    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3
    SUM = 4  # aggregates so far: b, after one more value c
    LEAST = 5
    GREATEST = 6
    COUNT = 7
    FIRST = 8  # b if it is present, else c
    # slot a of the new instance or output becomes b
    STORE = 9
    LINK = 10  # a chain: the event, after the chain b, or alone if b is missing
    # tests of b and c; if one fails, continue at instruction a
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
    # continue at instruction a
    JUMP = 26
