"""AMKH's figure 1 and the studies behind its rules (Wu and Yu, "Monitoring Web-Based Subscription Services")."""

from tocsin.bench.amkh.run import EXPERIMENTS, run, titles
from tocsin.bench.amkh.scales import PAPER, SCALES, SMALL, Scale

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Scale", "run", "titles"]
