"""`max`: the greatest value within a range."""

from __future__ import annotations

from functools import partial
from typing import Final

from tocsin.views.kinds.extremes import Extremes, LatestValues
from tocsin.views.kinds.kind import Kind, Reads

KIND: Final = Kind("max", Reads.NUMBER, partial(Extremes, greatest=True), LatestValues)
