"""Cayuga's experiments (Demers and others, EDBT 2006, 4), and what a user would write instead for two questions."""

from tocsin.bench.cayuga.inputs import Data
from tocsin.bench.cayuga.run import EXPERIMENTS, run
from tocsin.bench.cayuga.scales import PAPER, SCALES, SMALL, Scale

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Data", "Scale", "run"]
