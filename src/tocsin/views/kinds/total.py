"""The sum of the rows within a range: of their exact sum the nearest float; null if there are none."""

from __future__ import annotations

from typing import Final

from tocsin.views._kernels.running import TOTAL
from tocsin.views.kinds.kind import Kind, Reads
from tocsin.views.kinds.running import RunningAnswers, RunningReformulator

KIND: Final = Kind("sum", Reads.NUMBER, lambda: RunningReformulator(TOTAL), lambda: RunningAnswers(TOTAL))
