"""Cayuga's experiments (Demers and others, EDBT 2006, 4), and what a user would write instead for two questions."""

from benchmarks.cayuga.inputs import Data
from benchmarks.cayuga.run import EXPERIMENTS, run
from benchmarks.cayuga.scales import PAPER, SCALES, SMALL, Scale

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Data", "Scale", "run"]
