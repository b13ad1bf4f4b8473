"""The content-addressable network over (low, high): zones, routes, and how a message spreads over a rectangle."""
