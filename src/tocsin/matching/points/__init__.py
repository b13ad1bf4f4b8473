"""Conjunctions as points in the plane; an event matches the points in a rectangle."""
