"""Inserting the tests that strings pass into the pairs of their events."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import Field
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.operators.index import PassedTests
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import kernel

_FURTHER: Final = int(Field.TEXT) - int(Field.STRING)


@kernel
def splice(
    old: EncodedEvents, strings: Int64s, which: Int64s, passed: PassedTests, ordered: bool, new: EncodedEvents
) -> None:
    """Write the pairs of `old` into `new`, and behind each of the pairs `strings` the tests that its string passes.

    `strings` are positions in `old`, ascending, and `which` names the string at each. `ordered` is False where lows and highs are the keys' array.
    """
    done, count = np.int64(0), np.int64(0)
    new.offsets[0] = 0
    for event in range(old.offsets.shape[0] - 1):
        for j in range(old.offsets[event], old.offsets[event + 1]):
            new.fields[count], new.keys[count] = old.fields[j], old.keys[j]
            if ordered:
                new.lows[count], new.highs[count] = old.lows[j], old.highs[j]
            count += 1
            if done == strings.shape[0] or strings[done] != j:
                continue
            for k in range(passed.offsets[which[done]], passed.offsets[which[done] + 1]):
                new.fields[count], new.keys[count] = old.fields[j] + _FURTHER, passed.codes[k]
                if ordered:
                    new.lows[count] = new.highs[count] = passed.codes[k]
                count += 1
            done += 1
        new.offsets[event + 1] = count
