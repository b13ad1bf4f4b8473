"""Tests on strings: which of the tests that subscriptions ask of an attribute does a string pass?

Each operator has an index of its own, in a file of its own.
"""
