"""Sequences: subscriptions over many events, by shared automata."""

from tocsin.sequences.modes import MODES, Optimisations
from tocsin.sequences.running.sequences import Sequences, SequenceStats

__all__ = ["MODES", "Optimisations", "SequenceStats", "Sequences"]
