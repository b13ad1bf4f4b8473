"""How many rows there are within a range; 0 if there are none."""

from __future__ import annotations

from typing import Final

from tocsin.views._kernels.running import NUMBER
from tocsin.views.kinds.kind import Kind, Reads
from tocsin.views.kinds.running import RunningAnswers, RunningReformulator

KIND: Final = Kind(
    "count", Reads.PRESENCE, lambda: RunningReformulator(NUMBER), lambda: RunningAnswers(NUMBER)
)
