"""OpIndex: conjunctions under a pivot attribute, their predicates in lists by operator (Zhang, Chan and Tan 2014)."""
