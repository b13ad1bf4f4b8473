"""Tocsin on Spark: against a join, against the embedded engine, sharded, and while subscriptions change."""

from tocsin.bench.spark.run import EXPERIMENTS, run
from tocsin.bench.spark.scales import PAPER, SCALES, SMALL, Scale

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Scale", "run"]
