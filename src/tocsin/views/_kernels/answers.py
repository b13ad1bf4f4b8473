"""What subscribers make of messages that carry the new answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.jit import kernel


class ToldRoom(NamedTuple):
    """Where is written who is told what."""

    change: NDArray[np.int64]  # [told]
    old: NDArray[np.float64]  # [told]
    new: NDArray[np.float64]  # [told]


@kernel
def tell_values(
    answers: NDArray[np.float64],
    values: NDArray[np.float64],
    changes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    places: NDArray[np.int64],
    told: ToldRoom,
) -> None:
    """Let message m give its value to the places from offsets[m] to offsets[m + 1], and write what each had before."""
    for m in range(values.shape[0]):
        for i in range(offsets[m], offsets[m + 1]):
            told.change[i] = changes[m]
            told.old[i] = answers[places[i]]
            told.new[i] = values[m]
            answers[places[i]] = values[m]
