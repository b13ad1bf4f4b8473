"""The database/network interface's experiments on the server's side (Chandramouli, Xie and Yang, SIGMOD 2006, 5), and its rivals."""

from benchmarks.dbnet.views.inputs import Data
from benchmarks.dbnet.views.run import EXPERIMENTS, run
from benchmarks.dbnet.views.scales import PAPER, SCALES, SMALL, Scale

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Data", "Scale", "run"]
