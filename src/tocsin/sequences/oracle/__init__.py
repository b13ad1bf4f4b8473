"""The slow, obvious evaluator of the algebra, by which everything that runs sequences is judged."""

from tocsin.sequences.oracle.occurrences import Occurrence, Taken, occurrences
from tocsin.sequences.oracle.runner import OracleSequenceMatcher

__all__ = ["Occurrence", "OracleSequenceMatcher", "Taken", "occurrences"]
