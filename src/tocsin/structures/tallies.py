"""Tallies: the number of floats and their exact sum.

A tally is a row of integers: the count, then the limbs of the sum, the least significant first, each of LIMB bits; the last
one has the sign. Limb i counts units of 2 ** (LIMB * (bottom + i)). Every float is a whole number of units once `bottom` is
low enough, so sums stay exact however many floats are added and removed. A window names the limbs of a tally; a wider window
holds the same sums. Limbs are signed and never wrap around.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from tocsin.structures.array_types import Float64s, Int64s
from tocsin.structures.jit import helper, kernel

COUNT: Final = 0  # the column of the count; limbs follow
LIMB: Final = 60
_MASK: Final = (1 << LIMB) - 1
_SPARE: Final = 8  # a limb below it fits, shifted, in front of the next one: 3 bits and a sign
_HEADROOM: Final = 40 - 3  # bits for sums of 2 ** 40 numbers, of which the last limb has three beside its own
_DIGITS: Final = 53  # bits of a float
_ENOUGH: Final = 1 << (_DIGITS + 4)  # from here on digits round to a float; the last bit stands for all below
_LEAST_POWER: Final = -960
_POWERS: Final = 2.0 ** np.arange(_LEAST_POWER, 960)  # times any digits they give a normal float
_INFINITE: Final = 1024  # the exponent that is too large for floats
_NO_LOW: Final = 1 << 20


class Window(NamedTuple):
    """The limbs of tallies: `limbs` of them, the first with units of 2 ** (LIMB * bottom)."""

    bottom: int
    limbs: int

    def union(self, other: Window) -> Window:
        """Return the smallest window with all limbs of both."""
        if not self.limbs or not other.limbs:
            return self if self.limbs else other
        bottom = min(self.bottom, other.bottom)
        return Window(bottom, max(self.bottom + self.limbs, other.bottom + other.limbs) - bottom)


def window_of(*columns: Float64s) -> Window:
    """Return the smallest window for all sums of these numbers, without NaN; for zeros only, one limb at 0."""
    exponents = np.array([_NO_LOW, -_NO_LOW], dtype=np.int64)
    for column in columns:
        extent(column, exponents)
    low, high = exponents.tolist()
    if low == _NO_LOW:
        return Window(0, 1)
    bottom = low // LIMB
    return Window(bottom, max(1, -((bottom * LIMB - high - _HEADROOM) // LIMB)))


def widen_tallies(rows: Int64s, window: Window, into: Window) -> Int64s:
    """Return tallies in a window that includes theirs; the same array if it is theirs."""
    if window == into:
        return rows
    wider = np.zeros((len(rows), 1 + into.limbs), dtype=np.int64)
    wider[:, COUNT] = rows[:, COUNT]
    if not window.limbs:
        return wider
    begin = 1 + window.bottom - into.bottom
    last = begin + window.limbs - 1
    wider[:, begin : last + 1] = rows[:, 1:]
    for limb in range(last, into.limbs):  # the sign moves up to the last one
        wider[:, limb + 1] = wider[:, limb] >> LIMB
        wider[:, limb] &= _MASK
    return wider


@kernel
def extent(numbers: Float64s, exponents: Int64s) -> None:
    """Lower exponents[0] to the exponent of the lowest bit of any number; raise exponents[1] so that all are below 2 ** exponents[1]."""
    for i in range(numbers.shape[0]):
        number = numbers[i]
        if number == 0 or np.isnan(number):
            continue
        fraction, exponent = math.frexp(number)
        digits = np.int64(fraction * (1 << _DIGITS))
        _, above = math.frexp(np.float64(digits & -digits))
        exponents[0] = min(exponents[0], np.int64(exponent - _DIGITS + above - 1))
        exponents[1] = max(exponents[1], np.int64(exponent))


@helper
def add_number(rows: Int64s, row: int, bottom: int, number: float, sign: int) -> None:
    """Add a number to a tally, or remove it if `sign` is -1; the window must hold it."""
    rows[row, COUNT] += sign
    last = rows.shape[1] - 1
    if number == 0 or last == COUNT:
        return
    fraction, exponent = math.frexp(number)
    digits = np.int64(fraction * (1 << _DIGITS)) * sign
    above = np.int64(exponent) - _DIGITS - bottom * LIMB
    if above < 0:  # its lowest digits are zeros
        digits >>= -above
        above = np.int64(0)
    limb, shift = 1 + above // LIMB, above % LIMB
    if limb == last:
        rows[row, last] += digits << shift
        return
    there = LIMB - shift
    sum_ = rows[row, limb] + ((digits & ((np.int64(1) << there) - 1)) << shift)
    rows[row, limb] = sum_ & _MASK
    carry = (digits >> there) + (sum_ >> LIMB)
    limb += 1
    while carry != 0 and limb < last:
        sum_ = rows[row, limb] + carry
        rows[row, limb] = sum_ & _MASK
        carry = sum_ >> LIMB
        limb += 1
    rows[row, limb] += carry


@helper
def add_tally(rows: Int64s, row: int, others: Int64s, other: int, sign: int) -> None:
    """Add another tally of the same window to one, or subtract it if `sign` is -1."""
    rows[row, COUNT] += sign * others[other, COUNT]
    last = rows.shape[1] - 1
    if last == COUNT:
        return
    carry = np.int64(0)
    for limb in range(1, last):
        sum_ = rows[row, limb] + sign * others[other, limb] + carry
        rows[row, limb] = sum_ & _MASK
        carry = sum_ >> LIMB
    rows[row, last] += sign * others[other, last] + carry


@helper
def rounded(rows: Int64s, row: int, bottom: int) -> float:
    """Return the float nearest to a tally's sum, ties to even; infinite if no float is large enough."""
    limb = np.int64(rows.shape[1] - 1)
    digits = rows[row, limb]
    while limb > 1 and -_SPARE <= digits < _SPARE:
        limb -= 1
        digits = (digits << LIMB) + rows[row, limb]
    exponent = (bottom + limb - 1) * LIMB
    if limb > 1:
        shift = np.int64(0)
        while -_ENOUGH < digits < _ENOUGH:
            digits <<= 4
            shift += 4
        below = rows[row, limb - 1]
        digits += below >> (LIMB - shift)
        exponent -= shift
        # Lower bits decide only ties, so one sticky bit stands for them; it is never the rounding bit itself.
        is_more = (below & ((np.int64(1) << (LIMB - shift)) - 1)) != 0
        for i in range(1, limb - 1):
            is_more = is_more or rows[row, i] != 0
        if is_more:
            digits |= 1
    if _LEAST_POWER <= exponent < _LEAST_POWER + _POWERS.shape[0]:
        return np.float64(digits) * _POWERS[exponent - _LEAST_POWER]
    fraction, length = math.frexp(np.float64(digits))
    if length + exponent > _INFINITE:
        return math.copysign(np.inf, fraction)
    # A subnormal sum of floats has no bit below theirs, so `ldexp` does not round a second time.
    return math.ldexp(fraction, int(length + exponent))


@kernel
def add_numbers(rows: Int64s, slots: Int64s, bottom: int, numbers: Float64s, sign: int) -> None:
    """Add each number to the tally in its slot, or remove it if `sign` is -1."""
    for i in range(slots.shape[0]):
        add_number(rows, slots[i], bottom, numbers[i], sign)
