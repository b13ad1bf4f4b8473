"""OpIndex's experiments (Zhang, Chan and Tan, VLDB 2014, 7), on our matchers."""

from tocsin.bench.opindex.inputs import Data
from tocsin.bench.opindex.run import EXPERIMENTS, run
from tocsin.bench.opindex.scales import PAPER, SCALES, SMALL, Scale
from tocsin.bench.opindex.session import GAPS

__all__ = ["EXPERIMENTS", "GAPS", "PAPER", "SCALES", "SMALL", "Data", "Scale", "run"]
