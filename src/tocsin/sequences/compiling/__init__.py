"""The compiler: a sequence's expression becomes an automaton.

An expression is read as a chain of steps. Every name becomes a value: of the event at hand, or held by the instance.
Conditions are pushed down to the earliest step where they mean the same. Then the automaton is built from its end
backwards, because the values that a node holds are those that the later steps need.
"""
