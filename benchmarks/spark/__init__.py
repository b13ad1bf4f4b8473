"""Tocsin on Spark: against a join, against the embedded engine, sharded, and while subscriptions change."""

from benchmarks.spark.run import EXPERIMENTS, run
from benchmarks.spark.scales import PAPER, SCALES, SMALL, Scale

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Scale", "run"]
