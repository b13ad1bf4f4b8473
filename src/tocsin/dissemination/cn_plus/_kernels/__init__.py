"""Compiled loops over the rows that subscriptions keep."""
