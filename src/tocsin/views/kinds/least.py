"""`min`: the least value within a range."""

from __future__ import annotations

from typing import Final

from tocsin.views.kinds.extremes import Extremes, LatestValues
from tocsin.views.kinds.kind import Kind, Reads

KIND: Final = Kind("min", Reads.NUMBER, Extremes, LatestValues)
