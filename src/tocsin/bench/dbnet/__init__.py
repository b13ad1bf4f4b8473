"""The database/network interface's experiments on the network's side (Chandramouli, Xie and Yang, SIGMOD 2006, 5): six strategies."""

from tocsin.bench.dbnet.experiments import EXPERIMENTS, printed
from tocsin.bench.dbnet.run import run
from tocsin.bench.dbnet.scales import PAPER, SCALES, SMALL, Scale
from tocsin.bench.views.inputs import Data

__all__ = ["EXPERIMENTS", "PAPER", "SCALES", "SMALL", "Data", "Scale", "printed", "run"]
