"""The oracle: a slow, obvious evaluator of the algebra, to which every sequence matcher is compared."""

from tocsin.sequences.oracle.matcher import OracleSequenceMatcher
from tocsin.sequences.oracle.occurrences import Occurrence, Taken, occurrences

__all__ = ["Occurrence", "OracleSequenceMatcher", "Taken", "occurrences"]
