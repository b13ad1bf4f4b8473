"""Conjunctions as points in the plane, of which an event asks for those in a rectangle."""
