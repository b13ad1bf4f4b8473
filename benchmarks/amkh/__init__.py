"""AMKH's figure 1 and the studies behind its rules (Wu and Yu, "Monitoring Web-Based Subscription Services")."""

from benchmarks.amkh.run import EXPERIMENTS, run, titles
from benchmarks.amkh.scales import PAPER, SCALES, SMALL, Scale

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Scale", "run", "titles"]
