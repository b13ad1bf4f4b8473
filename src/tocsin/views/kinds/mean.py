"""The mean of the rows within a range: their sum, as it is told, divided by their count; null if there are none."""

from __future__ import annotations

from typing import Final

from tocsin.views._kernels.running import MEAN
from tocsin.views.kinds.kind import Kind, Reads
from tocsin.views.kinds.running import RunningAnswers, RunningReformulator

KIND: Final = Kind("avg", Reads.NUMBER, lambda: RunningReformulator(MEAN), lambda: RunningAnswers(MEAN))
