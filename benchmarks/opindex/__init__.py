"""OpIndex's experiments (Zhang, Chan and Tan, VLDB 2014, 7), on our matchers."""

from benchmarks.opindex.inputs import Data
from benchmarks.opindex.run import EXPERIMENTS, run
from benchmarks.opindex.scales import PAPER, SCALES, SMALL, Scale
from benchmarks.opindex.session import GAPS

__all__ = ["EXPERIMENTS", "GAPS", "PAPER", "SCALES", "SMALL", "Data", "Scale", "run"]
