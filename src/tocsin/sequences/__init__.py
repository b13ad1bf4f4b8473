"""Sequences: subscriptions over many events, by shared automata."""
