"""Le Subscribe's experiments (Fabret and others, SIGMOD 2001, 6), on our matchers."""

from tocsin.bench.le_subscribe.run import EXPERIMENTS, run
from tocsin.bench.le_subscribe.scales import PAPER, SCALES, SMALL, Scale

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Scale", "run"]
