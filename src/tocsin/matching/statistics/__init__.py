"""Statistics of events, and the probability of predicates that they imply."""

from tocsin.matching.statistics.distribution import Distribution
from tocsin.matching.statistics.estimates import AttributeStatistics
from tocsin.matching.statistics.joint import CandidateGroups, Joint, candidate_groups
from tocsin.matching.statistics.statistics import Statistics

__all__ = [
    "AttributeStatistics",
    "CandidateGroups",
    "Distribution",
    "Joint",
    "Statistics",
    "candidate_groups",
]
