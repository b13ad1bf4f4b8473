"""Matchers: which of these conjunctions does this event satisfy?"""

from tocsin.matching.batches import (
    ClauseGroup,
    ConjunctionBatch,
    ConjunctionGroup,
    EventBatch,
    IdArray,
    Matches,
)
from tocsin.matching.matcher import Explanation, Matcher, MatcherStats, PredicateTruth, takes_clauses
from tocsin.matching.oracle import Oracle
from tocsin.matching.registry import create_matcher, declare, register, registered_matchers
from tocsin.matching.saved import MatcherParts, Savable, open_matcher, save_matcher
from tocsin.matching.statistics import Statistics

# These bring the compiler with them, so they are imported when they are needed.
declare("tocsin.matching.adaptive.matcher", "adaptive")
declare("tocsin.matching.be_tree.matcher", "be-tree")
declare("tocsin.matching.le_subscribe.counting", "counting")
declare("tocsin.matching.le_subscribe.dynamic", "dynamic")
declare("tocsin.matching.le_subscribe.static", "static")
declare("tocsin.matching.le_subscribe.matcher", "propagation", "propagation-wp")
declare("tocsin.matching.amkh.matcher", "amkh", "mkh")
declare("tocsin.matching.k_index.matcher", "k-index")
declare("tocsin.matching.opindex.matcher", "opindex", "opindex-bs")
declare("tocsin.matching.points.matcher", "points")

__all__ = [
    "ClauseGroup",
    "ConjunctionBatch",
    "ConjunctionGroup",
    "EventBatch",
    "Explanation",
    "IdArray",
    "Matcher",
    "MatcherParts",
    "MatcherStats",
    "Matches",
    "Oracle",
    "PredicateTruth",
    "Savable",
    "Statistics",
    "create_matcher",
    "open_matcher",
    "register",
    "registered_matchers",
    "save_matcher",
    "takes_clauses",
]
