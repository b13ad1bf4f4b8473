"""The database/network interface's experiments on the network's side (Chandramouli, Xie and Yang, SIGMOD 2006, 5): six strategies."""

from benchmarks.dbnet.network.experiments import EXPERIMENTS, printed
from benchmarks.dbnet.network.run import run
from benchmarks.dbnet.network.scales import PAPER, SCALES, SMALL, Scale
from benchmarks.dbnet.views.inputs import Data

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Data", "Scale", "printed", "run"]
