"""Indexes of tests on strings: the `starts with`, `contains`, `like`, ... predicates of an attribute that a string passes."""
