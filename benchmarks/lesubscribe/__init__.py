"""Le Subscribe's experiments (Fabret and others, SIGMOD 2001, 6), on our matchers."""

from benchmarks.lesubscribe.run import EXPERIMENTS, run
from benchmarks.lesubscribe.scales import PAPER, SCALES, SMALL, Scale

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Scale", "run"]
