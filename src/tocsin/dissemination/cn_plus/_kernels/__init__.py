"""Compiled loops over the minimum rows of subscriptions."""
